/** Kubernetes 1.33 stores claims, templates and slices in `v1beta1`, and 1.31 in `v1alpha3`. */
import type { JsonObject, StoredVersion } from "../../kind.ts";
import { alphaSliceToStorage, betaSliceToStorage, claimToStorage, templateToStorage } from "./conversion.ts";
import { alphaResourceSlice, alphaTypes, betaResourceSlice, betaTypes } from "./schemas.ts";

type StoredVersions = Readonly<Record<"v1beta1" | "v1alpha3", StoredVersion>>;

export const storedClaims: StoredVersions = {
  v1beta1: stored(betaTypes.resourceClaim, claimToStorage),
  v1alpha3: stored(alphaTypes.resourceClaim, claimToStorage),
};

export const storedTemplates: StoredVersions = {
  v1beta1: stored(betaTypes.resourceClaimTemplate, templateToStorage),
  v1alpha3: stored(alphaTypes.resourceClaimTemplate, templateToStorage),
};

export const storedSlices: StoredVersions = {
  v1beta1: stored(betaResourceSlice, betaSliceToStorage),
  v1alpha3: stored(alphaResourceSlice, alphaSliceToStorage),
};

function stored<F>(schema: NonNullable<StoredVersion["schema"]>, convert: (value: F) => object): StoredVersion {
  return { schema, convert: (value) => convert(value as F) as JsonObject };
}
