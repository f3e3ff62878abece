/** The content type of a body that its server sends without one, as in Go: after mimesniff.spec.whatwg.org. */

/** Bytes of a body that are looked at. */
const SNIFFED_BYTES_MAX = 512;

const HTML =
  /^[\t\n\f\r ]*<(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|BODY|BR|B|P|!--)[ >]/i;
const XML = /^[\t\n\f\r ]*<\?xml/;

/** Parts of the body by their offsets, as latin1. */
type Signature = readonly (readonly [offset: number, text: string])[];

const SIGNATURES: readonly (readonly [type: string, ...signatures: readonly Signature[]])[] = [
  ["application/pdf", [[0, "%PDF-"]]],
  ["application/postscript", [[0, "%!PS-Adobe-"]]],
  ["text/plain; charset=utf-16be", [[0, "\xfe\xff"]]],
  ["text/plain; charset=utf-16le", [[0, "\xff\xfe"]]],
  ["text/plain; charset=utf-8", [[0, "\xef\xbb\xbf"]]],
  ["image/x-icon", [[0, "\0\0\x01\0"]], [[0, "\0\0\x02\0"]]],
  ["image/bmp", [[0, "BM"]]],
  ["image/gif", [[0, "GIF87a"]], [[0, "GIF89a"]]],
  [
    "image/webp",
    [
      [0, "RIFF"],
      [8, "WEBPVP"],
    ],
  ],
  ["image/png", [[0, "\x89PNG\r\n\x1a\n"]]],
  ["image/jpeg", [[0, "\xff\xd8\xff"]]],
  [
    "audio/aiff",
    [
      [0, "FORM"],
      [8, "AIFF"],
    ],
  ],
  ["audio/mpeg", [[0, "ID3"]]],
  ["application/ogg", [[0, "OggS\0"]]],
  ["audio/midi", [[0, "MThd\0\0\0\x06"]]],
  [
    "video/avi",
    [
      [0, "RIFF"],
      [8, "AVI "],
    ],
  ],
  [
    "audio/wave",
    [
      [0, "RIFF"],
      [8, "WAVE"],
    ],
  ],
  ["video/mp4", [[4, "ftypmp4"]]],
  ["video/webm", [[0, "\x1aE\xdf\xa3"]]],
  ["application/vnd.ms-fontobject", [[34, "LP"]]],
  ["font/ttf", [[0, "\0\x01\0\0"]]],
  ["font/otf", [[0, "OTTO"]]],
  ["font/collection", [[0, "ttcf"]]],
  ["font/woff", [[0, "wOFF"]]],
  ["font/woff2", [[0, "wOF2"]]],
  ["application/x-gzip", [[0, "\x1f\x8b\x08"]]],
  ["application/zip", [[0, "PK\x03\x04"]]],
  ["application/x-rar-compressed", [[0, "Rar!\x1a\x07\0"]], [[0, "Rar!\x1a\x07\x01\0"]]],
  ["application/wasm", [[0, "\0asm"]]],
];

/** `chunk`: the first bytes of the body, not empty. */
export function sniffContentType(chunk: Uint8Array): string {
  const bytes = Buffer.from(chunk.subarray(0, SNIFFED_BYTES_MAX));
  const text = bytes.toString("latin1");
  if (HTML.test(text)) return "text/html; charset=utf-8";
  if (XML.test(text)) return "text/xml; charset=utf-8";
  const matches = (signature: Signature): boolean => signature.every(([offset, part]) => text.startsWith(part, offset));
  const found = SIGNATURES.find(([, ...signatures]) => signatures.some(matches));
  return found?.[0] ?? (bytes.some(isBinary) ? "application/octet-stream" : "text/plain; charset=utf-8");
}

/** Control characters that no text has. */
function isBinary(byte: number): boolean {
  return byte < 0x20 && byte !== 0x1b && (byte <= 0x08 || byte === 0x0b || byte >= 0x0e);
}
