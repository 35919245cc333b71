"""Who imports whom in ``src/tieline``, type-only imports included: for the drawing of the rooms and for ``make shape``.

The graph is grimp's, on which import-linter's contracts rest too, so that the drawing shows what the contracts check.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grimp
import rustworkx

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Imports:
    """The imports of a package, module by module; what comes from other distributions is not in it."""

    package: str
    #: For each module, the modules of the package that it imports anywhere in its text.
    of: dict[str, frozenset[str]]

    def children(self, parent: str) -> dict[str, set[str]]:
        """What each direct child of a package needs of its siblings, whole subtrees taken together."""
        needs: dict[str, set[str]] = {}
        for module, imported in self.of.items():
            child = _child(parent, module)
            if child is None:
                continue
            wanted = needs.setdefault(child, set())
            wanted.update(other for name in imported if (other := _child(parent, name)) not in (None, child) and other)
        return needs

    def packages(self) -> Iterator[str]:
        """Every package that has children, the whole one first."""
        yield from sorted({module.rpartition(".")[0] for module in self.of if "." in module})


def read_imports(source: Path = ROOT / "src", package: str = "tieline") -> Imports:
    """Read the tree below ``source``, which may be another checkout than the one that is installed."""
    # a package that has been imported is found where it was imported from, whatever the path says
    imported = sys.modules.pop(package, None)
    sys.path.insert(0, str(source))
    try:
        graph = grimp.build_graph(package, cache_dir=None)
    finally:
        sys.path.remove(str(source))
        if imported is not None:
            sys.modules[package] = imported
    return Imports(
        package, {module: frozenset(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    )


def cycles(needs: dict[str, set[str]]) -> list[list[str]]:
    """The groups that need each other all around, largest first; none in a tree that can be read in one direction."""
    graph, _places = _graph(needs)
    groups = [sorted(graph[place] for place in group) for group in rustworkx.strongly_connected_components(graph)]
    return sorted((group for group in groups if len(group) > 1), key=lambda group: (-len(group), group))


def essential(needs: dict[str, set[str]]) -> dict[str, set[str]]:
    """The needs that do not follow from others: with these arrows alone, everybody still reaches what they need."""
    graph, _places = _graph(needs)
    reduced, moved = rustworkx.transitive_reduction(graph)
    names = {moved[place]: graph[place] for place in graph.node_indices()}
    kept: dict[str, set[str]] = {name: set() for name in needs}
    for here, there in reduced.edge_list():
        kept[names[here]].add(names[there])
    return kept


def _graph(needs: dict[str, set[str]]) -> tuple[rustworkx.PyDiGraph[str, None], dict[str, int]]:
    graph: rustworkx.PyDiGraph[str, None] = rustworkx.PyDiGraph()
    places = {
        name: graph.add_node(name) for name in sorted({*needs, *(n for wanted in needs.values() for n in wanted)})
    }
    for name, wanted in needs.items():
        for other in sorted(wanted):
            graph.add_edge(places[name], places[other], None)
    return graph, places


def _child(parent: str, module: str) -> str | None:
    """The child of ``parent`` in which a module lies, or None if it lies elsewhere."""
    if not module.startswith(f"{parent}."):
        return None
    return module[len(parent) + 1 :].partition(".")[0]
