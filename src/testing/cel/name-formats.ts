/** Forms of names for tests; those of the product belong to the kinds. */
import type { NameForms } from "../../cel/libraries/formats.ts";

function form(name: string, pattern: RegExp): (text: string) => readonly string[] {
  return (text) => (pattern.test(text) ? [] : [`no ${name}`]);
}

export const nameForms: NameForms = {
  dns1123Label: form("label", /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/),
  dns1123Subdomain: form("subdomain", /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/),
  dns1035Label: form("label", /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/),
  qualifiedName: form("qualified name", /^([-a-z0-9.]+\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/),
  labelValue: form("label value", /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/),
};
