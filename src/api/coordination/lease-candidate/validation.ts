/** Rules for candidates of coordinated leader election. */
import { type FieldError, invalidField, notSupported, requiredField } from "../../../schema/validation/field-error.ts";
import { qualifiedName, validateName } from "../../meta/validation/names.ts";
import type { LeaseCandidate, LeaseCandidateSpec } from "./schema.ts";
import { compareSemanticVersions, parseSemanticVersion, type SemanticVersion } from "./semantic-version.ts";

const OLDEST = "OldestEmulationVersion";

export function validateLeaseCandidate(object: LeaseCandidate): readonly FieldError[] {
  const { leaseName = "", binaryVersion = "", emulationVersion = "", strategy = "" } = object.spec ?? {};
  const [emulated, emulationErrors] = versionAt("spec.emulationVersion", emulationVersion);
  const [binary, binaryErrors] = versionAt("spec.binaryVersion", binaryVersion);
  const errors: FieldError[] = leaseName === "" ? [requiredField("spec.leaseName")] : [];
  errors.push(...emulationErrors);
  errors.push(...(binaryVersion === "" ? [requiredField("spec.binaryVersion")] : binaryErrors));
  if (binaryVersion !== "" && emulationVersion !== "" && compareSemanticVersions(binary, emulated) < 0) {
    const detail = "must be greater than or equal to `emulationVersion`";
    errors.push(invalidField("spec.binaryVersion", binaryVersion, detail));
  }
  if (strategy === "") return [...errors, requiredField("spec.strategy")];
  if (strategy === OLDEST && compareSemanticVersions(emulated, ZERO) === 0) {
    errors.push(requiredField("spec.emulationVersion", `must be specified when \`strategy\` is '${OLDEST}'`));
  }
  return [...errors, ...validateElectionStrategy(strategy, "spec.strategy.strategy")];
}

const ZERO: SemanticVersion = { numbers: [0n, 0n, 0n], labels: [] };

/** An absent or invalid version counts as 0.0.0. */
function versionAt(path: string, text: string): readonly [version: SemanticVersion, errors: readonly FieldError[]] {
  if (text === "") return [ZERO, []];
  const version = parseSemanticVersion(text);
  return version === undefined ? [ZERO, [invalidField(path, text, "must be a valid semantic version")]] : [version, []];
}

/** One of Kubernetes, or one with a domain. Kubernetes repeats the field's name in the path of its errors. */
export function validateElectionStrategy(strategy: string, path: string): readonly FieldError[] {
  if (strategy.includes("/")) return validateName(path, strategy, qualifiedName);
  return strategy === OLDEST ? [] : [notSupported(path, strategy, [OLDEST])];
}

const leaseNameOf = (spec: LeaseCandidateSpec | undefined): string => spec?.leaseName ?? "";

export function validateLeaseCandidateUpdate(next: LeaseCandidate, previous: LeaseCandidate): readonly FieldError[] {
  const name = leaseNameOf(next.spec);
  return name === leaseNameOf(previous.spec) ? [] : [invalidField("spec.leaseName", name, "field is immutable")];
}
