// Names that Python puts into the scripts (embed.py), and properties that the scripts add to the page's objects.
declare const STYLE: string
declare const __KEY__: string
declare const __SCRIPT__: string
declare const __DATA__: string

declare var workbenchClocks: Map<string, Set<Player>>
declare var workbenchScripts: Map<string, Promise<unknown>>

interface Element {
  workbenchPlayer?: Player
}
