import { dns1123Subdomain } from "../../meta/validation/names.ts";

/** The name of a trust bundle begins with the name of its signer, if it has one: `example.com:signer:v1`. */
export function trustBundleNameProblems(name: string, signerName: string): readonly string[] {
  if (signerName === "") {
    const hasSigner = name.includes(":");
    return hasSigner
      ? ['ClusterTrustBundle without signer name must not have ":" in its name']
      : dns1123Subdomain(name);
  }
  const prefix = `${signerName.replaceAll("/", ":")}:`;
  return name.startsWith(prefix)
    ? dns1123Subdomain(name.slice(prefix.length))
    : [`ClusterTrustBundle for signerName ${signerName} must be named with prefix ${prefix}`];
}
