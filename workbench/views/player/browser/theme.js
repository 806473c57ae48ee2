// The theme, light or dark, of the page around a player, and the watcher that notices its changes.

const DARK_SYSTEM = matchMedia("(prefers-color-scheme: dark)")
const SELECTION_CHANGED = "workbench-selection" // the event that announces what the user selects

// Return whether the theme at an element is dark: that of JupyterLab or VS Code, else of the page, else of the system.
function isDarkAt(root) {
  const { body, documentElement } = document
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight == "false"
  if (body.classList.contains("vscode-dark") || body.classList.contains("vscode-high-contrast")) return true
  if (body.classList.contains("vscode-light")) return false
  const theme = root.closest("[data-theme]")?.dataset.theme ?? documentElement.dataset.theme
  if (theme) return theme == "dark"
  return DARK_SYSTEM.matches
}

// Give an object with a root element the theme around it: `isDark` (0 or 1), its CSS class, its font. Return whether
// the theme has changed.
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

// Announce what the user selects to all players and charts of a subject but `from`. `selected`: {kind: set of ids}.
function announceSelection(subject, from, selected) {
  if (subject) document.dispatchEvent(new CustomEvent(SELECTION_CHANGED, { detail: { subject, from, selected } }))
}

// Start the one watcher of a page, which passes themes and selections on to all players and charts. It has weak references
// to them, because a notebook drops outputs that it replaces without a notice.
function watchThemes(player) {
  // Several copies of this module may be in a page; they share the watcher.
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
    document.addEventListener(SELECTION_CHANGED, (/** @type {CustomEvent} */ { detail }) => {
      for (const reference of watching) reference.deref()?.applySelection(detail)
    })
  }
  for (const reference of watching) if (!reference.deref()) watching.delete(reference)
  watching.add(new WeakRef(player))
}
