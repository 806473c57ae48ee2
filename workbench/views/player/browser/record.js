// Store the record of a run in a PNG, if the page has the record; see workbench/records/carriers.py for the format.

const PNG_HEADER_B = 33 // the signature and the first chunk

function crc32(bytes) {
  let crc = ~0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1))
  }
  return ~crc >>> 0
}

// Return the PNG in a data URL as a Blob, with the page's record if it has one.
function pngWithRecord(url) {
  const png = Uint8Array.from(atob(url.slice(url.indexOf(",") + 1)), (letter) => letter.charCodeAt(0))
  const record = document.querySelector("script.workbench-record")
  /** @type {BlobPart[]} */
  const parts = [png]
  if (record) {
    const content = new TextEncoder().encode(`tEXtworkbench-record\0${record.textContent}`)
    const numbers = new DataView(new ArrayBuffer(8))
    numbers.setUint32(0, content.length - 4)
    numbers.setUint32(4, crc32(content))
    const [size, check] = [numbers.buffer.slice(0, 4), numbers.buffer.slice(4)]
    parts.splice(0, 1, png.subarray(0, PNG_HEADER_B), size, content, check, png.subarray(PNG_HEADER_B))
  }
  return new Blob(parts, { type: "image/png" })
}
