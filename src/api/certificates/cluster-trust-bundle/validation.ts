/** Rules for trust bundles: a name that starts with the signer's, and certificates of authorities in PEM. */
import { X509Certificate } from "node:crypto";
import { type FieldError, invalidField, tooLong } from "../../../schema/validation/field-error.ts";
import { validateSignerName } from "../certificate-signing-request/signer-name.ts";
import { type PemBlock, pemBlocks } from "../pem.ts";
import { trustBundleNameProblems } from "./bundle-name.ts";
import type { ClusterTrustBundle } from "./schema.ts";

const BUNDLE_BYTES_MAX = 1024 * 1024;
const SIGNER = "spec.signerName";

export function validateTrustBundle(object: ClusterTrustBundle, previous?: ClusterTrustBundle): readonly FieldError[] {
  const { signerName = "", trustBundle } = object.spec;
  const { name = "", generateName = "" } = object.metadata ?? {};
  const prefixProblems = generateName === "" ? [] : trustBundleNameProblems(generateName, signerName, true);
  return [
    ...prefixProblems.map((problem) => invalidField("metadata.generateName", generateName, problem)),
    ...trustBundleNameProblems(name, signerName).map((problem) => invalidField("metadata.name", name, problem)),
    ...(signerName === "" ? [] : validateSignerName(signerName, SIGNER)),
    // What is stored was checked before.
    ...(trustBundle === previous?.spec.trustBundle ? [] : validateAnchors(trustBundle, "spec.trustBundle")),
  ];
}

function validateAnchors(pem: string, path: string): readonly FieldError[] {
  const invalid = (detail: string): FieldError => invalidField(path, "<value omitted>", detail);
  if (Buffer.byteLength(pem) > BUNDLE_BYTES_MAX) return [tooLong(path, BUNDLE_BYTES_MAX)];
  const blocks = pemBlocks(pem);
  const errors = blocks.flatMap((block, i) => {
    const problem = blockProblem(block);
    return problem === undefined ? [] : [invalid(`entry ${i} ${problem}`)];
  });
  if (errors.length > 0) return errors;
  if (blocks.length === 0) return [invalid("at least one trust anchor must be provided")];
  const indexes = Map.groupBy(blocks.keys(), (i) => blocks[i]?.bytes.toString("base64"));
  return [...indexes.values()]
    .filter((same) => same.length > 1)
    .map((same) => invalid(`duplicate trust anchor (indices [${same.join(" ")}])`));
}

function blockProblem({ label, headers, bytes }: PemBlock): string | undefined {
  if (label !== "CERTIFICATE") return `has bad block type: ${label}`;
  if (headers) return "has PEM block headers";
  try {
    return new X509Certificate(bytes).ca ? undefined : "does not have the CA bit set";
  } catch {
    return "does not parse as X.509";
  }
}

export function validateTrustBundleUpdate(
  next: ClusterTrustBundle,
  previous: ClusterTrustBundle,
): readonly FieldError[] {
  const signer = next.spec.signerName ?? "";
  return signer === (previous.spec.signerName ?? "") ? [] : [invalidField(SIGNER, signer, "field is immutable")];
}
