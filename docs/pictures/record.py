"""Pictures of plans, and of the live page, taken by a browser while the scene plays: ``make pictures``.

What those of the page show is measured while they are taken, so they differ from one recording to the next; nobody
compares them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from docs.pictures.plans import draw
from docs.pictures.scene import ISLAND_S, Scene, playing

FOLDER: Final = Path(__file__).parent.parent / "how" / "pictures"
CHROMIUM: Final = "/usr/bin/chromium"
FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
VIEWS: Final = ("overview", "messages", "clients", "network", "grid", "plan")
_DESK: Final = (1280, 800)
_PHONE: Final = (390, 844)
_COLOURS: Final = 192
#: After the loss of the grid, so that the pictures show how it goes on.
_AFTERWARDS_S: Final = 60


def main() -> None:
    """Play the scene, and take all pictures."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--out", type=Path, default=FOLDER, help="where the pictures go")
    asked.add_argument("--every", action="store_true", help="every view in light, dark and on a phone, to look at")
    options = asked.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for drawn in draw(options.out):
        _lighten(drawn)
    with tempfile.TemporaryDirectory() as folder, playing(Path(folder)) as scene, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        # the way that a grid took is drawn by whoever has watched it
        watching = {(theme, size): _open(browser, scene, theme, size) for theme, size in _looks(every=options.every)}
        _wait(ISLAND_S + _AFTERWARDS_S)
        for (theme, size), page in watching.items():
            _take(page, options.out, theme, size, every=options.every)
        browser.close()


def _looks(*, every: bool) -> list[tuple[str, tuple[int, int]]]:
    looks = [("light", _DESK), ("dark", _DESK), ("light", _PHONE)]
    return [*looks, ("dark", _PHONE)] if every else looks


def _open(browser: Browser, scene: Scene, theme: str, size: tuple[int, int]) -> Page:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=2 if size == _PHONE else 1,
    )
    page = context.new_page()
    page.goto(f"{scene.page}#/grid")
    page.wait_for_selector(".plane-box svg")
    return page


def _take(page: Page, folder: Path, theme: str, size: tuple[int, int], *, every: bool) -> None:
    views = VIEWS if every else {"light": VIEWS, "dark": ("overview", "grid")}[theme]
    if size == _PHONE and not every:
        views = ("overview",)
    prefix = "phone-" if size == _PHONE else ""
    for view in sorted(views, key=lambda one: one != "grid"):
        page.evaluate("view => { location.hash = `#/${view}`; }", view)
        page.wait_for_selector(f'main[data-view="{view}"] .content > *')
        page.wait_for_timeout(2500)  # for what is asked of the broker only while it is shown
        _shoot(page, folder / f"{prefix}{view}-{theme}.png")
    if theme == "light" and size == _DESK:
        _trace(page)
        _shoot(page, folder / "trace-light.png")


def _shoot(page: Page, path: Path) -> None:
    page.screenshot(path=path)
    _lighten(path)


def _lighten(path: Path) -> None:
    """Give a picture no more colours than it needs: a third of the bytes, and nobody sees it."""
    with Image.open(path) as taken:
        drawn = taken.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    drawn.save(path, optimize=True)


def _trace(page: Page) -> None:
    page.keyboard.press("/")
    page.fill("input[name=topic]", "microgrid/cigre-lv/R17/reading")
    page.fill("input[name=payload]", '{"voltage": 200, "frequency": 49.1}')
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog .steps", timeout=120_000)
    page.wait_for_timeout(300)


def _wait(seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        sys.stdout.write(f"\rthe scene plays, {left:4.0f} s …")
        sys.stdout.flush()
        time.sleep(min(1.0, left))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
