/** The headers that an authenticating proxy sends to an extension server. */
import type { UserInfo } from "../../auth/user.ts";

type HeaderValues = Record<string, string | readonly string[]>;

/** Characters of header names (RFC 9110, section 5.6.2), without the percent sign, which escapes others. */
const NAME_BYTE = /^[!#$&'*+.^_`|~0-9A-Za-z-]$/;

/** `X-Remote-User`, `-Uid`, `-Group` and `-Extra-*`. Without `withUid` the uid is left out. */
export function identityHeaders(user: UserInfo, withUid: boolean): HeaderValues {
  const headers: HeaderValues = { "X-Remote-User": encodeValue(user.name) };
  if (withUid && user.uid !== "") headers["X-Remote-Uid"] = encodeValue(user.uid);
  if (user.groups.length > 0) headers["X-Remote-Group"] = user.groups.map(encodeValue);
  for (const [key, values] of Object.entries(user.extra)) {
    if (values.length > 0) headers[`X-Remote-Extra-${escapeName(key)}`] = values.map(encodeValue);
  }
  return headers;
}

/** UTF-8 in a header, of which Node.js writes each character as a byte. */
function encodeValue(value: string): string {
  return Buffer.from(value).toString("latin1");
}

function escapeName(key: string): string {
  return Array.from(Buffer.from(key), (byte) => {
    const character = String.fromCharCode(byte);
    return NAME_BYTE.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");
}
