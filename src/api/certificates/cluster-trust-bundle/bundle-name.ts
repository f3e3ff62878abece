import { dns1123Subdomain } from "../../meta/validation/names.ts";
import { validatePrefix } from "../../meta/validation/object-meta.ts";

/** The name of a trust bundle begins with the name of its signer, if it has one: `example.com:signer:v1`. */
export function trustBundleNameProblems(name: string, signerName: string, isPrefix = false): readonly string[] {
  const validate = (text: string) => (isPrefix ? validatePrefix(text, dns1123Subdomain) : dns1123Subdomain(text));
  if (signerName === "") {
    const hasSigner = name.includes(":");
    return hasSigner ? ['ClusterTrustBundle without signer name must not have ":" in its name'] : validate(name);
  }
  const prefix = `${signerName.replaceAll("/", ":")}:`;
  return name.startsWith(prefix)
    ? validate(name.slice(prefix.length))
    : [`ClusterTrustBundle for signerName ${signerName} must be named with prefix ${prefix}`];
}
