// Light or dark, before anything is painted: as it was chosen last, or else as the system has it.
(() => {
  const KEY = "tieline-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage may be switched off
    }
  };
  const apply = () => {
    const chosen = stored();
    document.documentElement.dataset.theme = chosen === "dark" || (chosen !== "light" && system.matches) ? "dark" : "light";
  };
  system.addEventListener("change", apply);
  apply();
  globalThis.tielineTheme = {
    toggle() {
      const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // then it holds until the page is closed
      }
    },
  };
})();
