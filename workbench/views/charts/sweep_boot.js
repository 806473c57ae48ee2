// The script of a sweep's page: it loads the code that the page contains; see views/sweeps/page.py.
(async () => {
  const inflate = (id) => {
    const text = document.getElementById(id).textContent
    const packed = new Blob([Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0))])
    return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).text()
  }
  const url = URL.createObjectURL(new Blob([await inflate("wb-code")], { type: "text/javascript" }))
  const { startSweep } = await import(url)
  URL.revokeObjectURL(url)
  await startSweep(JSON.parse(await inflate("wb-data")))
})()
