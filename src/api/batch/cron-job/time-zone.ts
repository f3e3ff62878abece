/** Whether a name is that of a time zone of the IANA database, written as the database does. */
const PART = /^[A-Za-z._0-9+][A-Za-z._\-0-9+]{0,13}$/;

export function isTimeZone(name: string): boolean {
  const parts = name.split("/");
  if (parts.some((part) => part === "." || part === ".." || !PART.test(part))) return false;
  // Offsets are understood by the platform, but they are no zones.
  if (/^[-+]/.test(name)) return false;
  const known = canonicalName(name);
  if (known === undefined) return false;
  // Zones are files to Go: their names have one spelling. An alias is known by another name, and gets the doubt.
  return known === name || known.toLowerCase() !== name.toLowerCase();
}

function canonicalName(name: string): string | undefined {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
