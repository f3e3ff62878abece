import { type FieldError, invalidField, requiredField, tooLong } from "../../../schema/validation/field-error.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { dns1123Label, dns1123Subdomain } from "../../meta/validation/names.ts";

const DOMAIN_MAX = 253;
/** The maximum length: a domain, a slash, and a namespace and a name joined by a dot. */
const SIGNER_MAX = DOMAIN_MAX + 1 + 253 + 63 + 1;

/** A signer's domain and a name: `example.com/signer`. */
export function validateSignerName(text: string, path: string): readonly FieldError[] {
  if (text === "") return [requiredField(path)];
  const [domain = "", name = "", ...more] = text.split("/");
  if (!text.includes("/") || more.length > 0) {
    const detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    return [invalidField(path, text, detail)];
  }
  const labels = domain.split(".");
  return [
    ...(Buffer.byteLength(domain) > DOMAIN_MAX ? [tooLong(path, DOMAIN_MAX)] : []),
    ...firstInvalidLabel(labels, dns1123Label, domain, path),
    ...(labels.length < 2
      ? [invalidField(path, domain, "should be a domain with at least two segments separated by dots")]
      : []),
    ...firstInvalidLabel(name.split("."), dns1123Subdomain, name, path),
    ...(Buffer.byteLength(text) > SIGNER_MAX ? [tooLong(path, SIGNER_MAX)] : []),
  ];
}

function firstInvalidLabel(
  labels: readonly string[],
  check: (text: string) => readonly string[],
  part: string,
  path: string,
): readonly FieldError[] {
  for (const label of labels) {
    const problems = check(label);
    if (problems.length === 0) continue;
    return problems.map((problem) => invalidField(path, part, `validating label ${goQuote(label)}: ${problem}`));
  }
  return [];
}
