const UNSAFE = /[<>&\u2028\u2029]/g;

/** JSON as Go writes it: what HTML or JavaScript would trip over stands escaped. Outside of strings there is none. */
export function escapeHtml(json: string): string {
  return json.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
