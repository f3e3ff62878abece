/** The first document of a YAML text: Go's parser does not read further, whatever follows. */

const MARKER = /^(?:---|\.\.\.)(?=\s|$)/gm;
/** The first line that is neither empty, a comment nor a directive. */
const CONTENT = /^(?:[ \t]*(?:[^ \t\r\n#%]|\r(?!\n))|[ \t]+%)/m;

/** The text up to the marker that ends its first document. */
export function firstDocument(text: string): string {
  const mark = text.startsWith("\uFEFF") ? 1 : 0;
  const content = text.slice(mark).search(CONTENT);
  const start = content === -1 ? text.length : mark + content;
  MARKER.lastIndex = start;
  const marker = MARKER.exec(text);
  // The marker that begins the document.
  const end = marker?.index === start && marker[0] === "---" ? MARKER.exec(text) : marker;
  return end === null ? text : text.slice(0, end.index);
}
