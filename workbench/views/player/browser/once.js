// The module of each widget whose script a page loads only once; see once.py. It looks up the actual script.

const scripts = (globalThis.workbenchScripts ??= new Map()) // text -> promise of its module

function moduleOf(text) {
  if (!scripts.has(text)) {
    const place = URL.createObjectURL(new Blob([text], { type: "text/javascript" }))
    scripts.set(text, import(place).finally(() => URL.revokeObjectURL(place)))
  }
  return scripts.get(text)
}

async function initialize(context) {
  return (await moduleOf(context.model.get("script"))).default.initialize?.(context)
}

async function render(context) {
  return (await moduleOf(context.model.get("script"))).default.render(context)
}
export default { initialize, render }
