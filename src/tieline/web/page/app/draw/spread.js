// Words that would lie over each other move apart, by no more than they must.

/** Change `at` of all labels so that none is nearer to another than `space`, and all are between `least` and `most`. */
export function spread(labels, space, least, most) {
  const order = [...labels].sort((one, other) => one.at - other.at);
  // words that touch become a block, whose middle stays where the middle of their places is
  const blocks = [];
  for (const label of order) {
    let block = { labels: [label], middle: label.at };
    for (;;) {
      const before = blocks.at(-1);
      if (!before || begin(block, space) - end(before, space) >= space) break;
      blocks.pop();
      const all = [...before.labels, ...block.labels];
      block = { labels: all, middle: all.reduce((sum, { at }) => sum + at, 0) / all.length };
    }
    blocks.push(block);
  }
  for (const block of blocks) {
    const first = begin(block, space);
    block.labels.forEach((label, index) => {
      label.place = first + index * space;
    });
  }
  let next = most + space;
  for (const label of [...order].reverse()) {
    label.place = Math.min(label.place, next - space);
    next = label.place;
  }
  let last = least - space;
  for (const label of order) {
    label.at = Math.max(label.place, last + space);
    last = label.at;
  }
}

const begin = ({ labels, middle }, space) => middle - ((labels.length - 1) * space) / 2;
const end = ({ labels, middle }, space) => middle + ((labels.length - 1) * space) / 2;

/**
 * Where words begin that stand beside verticals at `x` and are `size` wide: before theirs, or else behind it.  None lies on
 * another vertical, on other words, or beyond `least` and `most`; null for words that have no such place.
 */
export function beside(verticals, least, most, gap) {
  let free = least; // where what was placed last ends
  return verticals.map(({ x, size }, number) => {
    const from = Math.max(free, verticals[number - 1]?.x ?? least);
    const to = verticals[number + 1]?.x ?? most;
    const begins = x - gap - size >= from + gap ? x - gap - size : x + gap + size <= to - gap ? x + gap : null;
    if (begins !== null) free = begins + size;
    return begins;
  });
}
