const UNSAFE = /[<>&\u2028\u2029]/g;

/** Escapes HTML special characters and line separators in JSON text, as Go's encoder does. */
export function escapeHtml(json: string): string {
  return json.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
