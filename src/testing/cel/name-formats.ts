/** Name formats for tests; the API package has those of the product. */
import type { NameFormats } from "../../cel/libraries/formats.ts";

function format(name: string, pattern: RegExp): (text: string) => readonly string[] {
  return (text) => (pattern.test(text) ? [] : [`no ${name}`]);
}

export const nameFormats: NameFormats = {
  dns1123Label: format("label", /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/),
  dns1123Subdomain: format("subdomain", /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/),
  dns1035Label: format("label", /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/),
  qualifiedName: format("qualified name", /^([-a-z0-9.]+\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/),
  labelValue: format("label value", /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/),
};
