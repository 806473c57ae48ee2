// A button that interrupts the kernel through Jupyter's server; see stop_button.py.

function render({ model, el }) {
  const config = document.getElementById("jupyter-config-data")
  if (!config) return // a page without a server, such as an exported one
  const { baseUrl, token } = JSON.parse(config.textContent)
  const button = document.createElement("button")
  button.className = "jupyter-button widget-button"
  button.textContent = "■ Stop"
  button.title = "Stop, like the button of the toolbar; finished points are kept"
  button.addEventListener("click", async () => {
    button.disabled = true
    const xsrf = /(?:^|; )_xsrf=([^;]+)/.exec(document.cookie)?.[1]
    const headers = { ...(token && { Authorization: `token ${token}` }), ...(xsrf && { "X-XSRFToken": xsrf }) }
    const answer = await fetch(`${baseUrl}api/kernels/${model.get("kernel")}/interrupt`, { method: "POST", headers })
    if (!answer.ok) {
      button.textContent = `cannot stop: ${answer.statusText}`
      button.disabled = false
    }
  })
  el.append(button)
}
export default { render }
