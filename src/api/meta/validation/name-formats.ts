/** The forms of names as expressions know them (`format.dns1123Label()`). */
import type { NameForms } from "../../../cel/libraries/formats.ts";
import { dns1035Label, dns1123Label, dns1123Subdomain, labelValue, qualifiedName } from "./names.ts";

export const nameFormats: NameForms = { dns1035Label, dns1123Label, dns1123Subdomain, labelValue, qualifiedName };
