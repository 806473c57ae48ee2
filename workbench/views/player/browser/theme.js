// Light or dark, as the page around is, and the one watcher of that.

const DARK_SYSTEM = matchMedia("(prefers-color-scheme: dark)")

// Of JupyterLab or VS Code if this is one of them, else of the page, else of the reader's system.
function isDarkAt(root) {
  const { body, documentElement } = document
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight == "false"
  if (body.classList.contains("vscode-dark") || body.classList.contains("vscode-high-contrast")) return true
  if (body.classList.contains("vscode-light")) return false
  const theme = root.closest("[data-theme]")?.dataset.theme ?? documentElement.dataset.theme
  if (theme) return theme == "dark"
  return DARK_SYSTEM.matches
}

// Gives what has a root the theme around it: its number (1 is dark), its class, its font. Whether it had another one.
function takeTheme(one) {
  const isDark = isDarkAt(one.root) ? 1 : 0
  if (isDark === one.isDark) return false
  one.isDark = isDark
  one.root.classList.toggle("wb-dark", !!isDark)
  one.font = getComputedStyle(one.root).fontFamily || "sans-serif"
  one.map.isStill = false
  one.map.shown = null
  return true
}

// One watcher for all players of a page. It refers to them weakly: a notebook forgets the outputs that it replaces, and
// does not say so.
function watchThemes(player) {
  // In a page there may be several copies of this module: they share the watcher.
  const watching = (globalThis.workbenchPlayers ??= new Set())
  if (!globalThis.workbenchThemes) {
    const tell = () => {
      for (const reference of watching) {
        const one = reference.deref()
        if (!one || one.isGone) watching.delete(reference)
        else one.retheme()
      }
    }
    const themes = (globalThis.workbenchThemes = new MutationObserver(tell))
    themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] })
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] })
    DARK_SYSTEM.addEventListener("change", tell)
  }
  for (const reference of watching) if (!reference.deref()) watching.delete(reference)
  watching.add(new WeakRef(player))
}
