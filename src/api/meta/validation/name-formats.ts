/** The name formats of CEL's `format` library (`format.dns1123Label()`). */
import type { NameFormats } from "../../../cel/libraries/formats.ts";
import { dns1035Label, dns1123Label, dns1123Subdomain, labelValue, qualifiedName } from "./names.ts";

export const nameFormats: NameFormats = { dns1035Label, dns1123Label, dns1123Subdomain, labelValue, qualifiedName };
