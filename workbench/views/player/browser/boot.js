// The script beside a player's element. It loads the player's module once for a page, and gives it the run.
// embed.py replaces the words between double underscores.

(async () => {
  const inflate = (text) => {
    const packed = new Blob([Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0))])
    return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()
  }
  const load = async (text) => {
    const url = URL.createObjectURL(new Blob([await inflate(text)], { type: "text/javascript" }))
    const module = await import(url)
    URL.revokeObjectURL(url)
    return module
  }
  const { mount } = await (globalThis[__KEY__] ??= load(__SCRIPT__))
  const data = await inflate(__DATA__)
  // A notebook runs the scripts of an output a moment before the output is in the page.
  for (let waited = 0; waited < 600; waited++) {
    const roots = [...document.querySelectorAll(`[data-workbench=__ID__]`)].filter((one) => !one.workbenchPlayer)
    for (const root of roots) mount(root, data)
    if (roots.length) return
    await new Promise((done) => setTimeout(done, waited < 50 ? 8 : 50))
  }
})()
