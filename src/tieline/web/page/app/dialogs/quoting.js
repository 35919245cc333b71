// Commands are copied into a shell, and what stands in them comes from strangers: so it is quoted, whatever it is.

const PLAIN = /^[\w./:@%+,=-]+$/;

/** One word of a command line, as bash and zsh read it; control characters would do something when they are pasted. */
export function quoted(word) {
  const shown = String(word);
  if (/[\u0000-\u001f\u007f-\u009f]/.test(shown)) {
    const escaped = [...shown].map((letter) => {
      const code = letter.codePointAt(0);
      if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return `\\u00${code.toString(16).padStart(2, "0")}`;
      return letter === "\\" || letter === "'" ? `\\${letter}` : letter;
    }).join("");
    return `$'${escaped}'`;
  }
  if (PLAIN.test(shown) && !shown.startsWith("-")) return shown;
  return `'${shown.replaceAll("'", "'\\''")}'`;
}
