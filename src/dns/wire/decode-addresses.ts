/** Decodes the records that follow the CNAME record of an ExternalName service. */
import { isIP } from "node:net";
import { decode } from "dns-packet";
import { isEncodableName } from "./query.ts";
import type { ResourceRecord } from "./response.ts";

const PRINTABLE = /^[!-~]*$/;

/** The addresses and CNAME records among the answers of a message whose structure has been checked. */
export function decodeAddresses(bytes: Buffer): readonly ResourceRecord[] {
  try {
    return (decode(bytes).answers ?? []).flatMap((each): readonly ResourceRecord[] => {
      const { name, type } = each;
      const ttl = "ttl" in each ? (each.ttl ?? 0) : 0;
      if (!isEncodableName(name) || !PRINTABLE.test(name)) return [];
      if ((type === "A" || type === "AAAA") && isIP(each.data) !== 0) return [{ name, ttl, type, data: each.data }];
      return type === "CNAME" && isEncodableName(each.data) && PRINTABLE.test(each.data)
        ? [{ name, ttl, type, data: each.data }]
        : [];
    });
  } catch {
    return [];
  }
}
