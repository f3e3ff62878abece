import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { dns1123Subdomain } from "./names.ts";

const PATH = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;
const PATH_MESSAGE = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";

/** Names of controllers below a domain: `example.com/ingress`. */
export function validateDomainPrefixedPath(text: string, field: string): readonly FieldError[] {
  const slash = text.indexOf("/");
  const [domain, path] = [text.slice(0, Math.max(0, slash)), text.slice(slash + 1)];
  if (domain === "" || path === "") {
    return [invalidField(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  return [
    ...dns1123Subdomain(domain).map((problem) => invalidField(field, domain, problem)),
    ...(PATH.test(path) ? [] : [invalidField(field, path, PATH_MESSAGE)]),
  ];
}
