// A widget whose script is loaded once for a page; see once.py. The widget's own module is this alone.

const scripts = (globalThis.workbenchScripts ??= new Map()) // text -> promise of its module

function moduleOf(text) {
  if (!scripts.has(text)) {
    const place = URL.createObjectURL(new Blob([text], { type: "text/javascript" }))
    scripts.set(text, import(place).finally(() => URL.revokeObjectURL(place)))
  }
  return scripts.get(text)
}

async function render(context) {
  return (await moduleOf(context.model.get("script"))).default.render(context)
}
export default { render }
