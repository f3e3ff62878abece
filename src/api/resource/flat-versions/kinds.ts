/** The kinds of `resource.k8s.io/v1beta1` and `v1alpha3`. Their rules are those of the stored version. */
import type { ApiObject, Conversion, Kind, Strategy, SubresourceStrategy } from "../../kind.ts";
import { otherVersionOf } from "../../other-version.ts";
import { statusSubresource } from "../../strategy.ts";
import { deviceClassKind } from "../device-class/kind.ts";
import { resourceClaimKind } from "../resource-claim/kind.ts";
import { resourceClaimStatusStrategy } from "../resource-claim/strategy.ts";
import { resourceClaimTemplateKind } from "../resource-claim-template/kind.ts";
import { resourceSliceKind } from "../resource-slice/kind.ts";
import type { DeviceClass } from "../schemas.ts";
import {
  alphaSliceFromStorage,
  alphaSliceToStorage,
  betaSliceFromStorage,
  betaSliceToStorage,
  claimFromStorage,
  claimToStorage,
  templateFromStorage,
  templateToStorage,
} from "./conversion.ts";
import {
  type AlphaResourceSlice,
  alphaResourceSlice,
  alphaTypes,
  type BetaResourceSlice,
  betaResourceSlice,
  betaTypes,
  type FlatResourceClaim,
  type FlatResourceClaimTemplate,
} from "./schemas.ts";

interface FlatVersion<T extends ApiObject, S extends ApiObject> {
  readonly kind: Kind<S>;
  readonly version: string;
  readonly since: string;
  readonly schema: Kind["schema"];
  readonly toStorage: (object: T) => S;
  readonly fromStorage: (object: ApiObject) => T;
}

/** Returns the kind in a flat version, which stores the other. */
function flatVersionOf<T extends ApiObject, S extends ApiObject>(options: FlatVersion<T, S>): Kind<T> {
  const { kind, version, since, schema, toStorage, fromStorage } = options;
  const { rowConditions: _, compareRows: __, storedVersions: ___, ...shared } = kind;
  const conversion: Conversion<T> = { storageKind: kind, toStorage, fromStorage };
  return {
    ...shared,
    version,
    since,
    schema,
    columns: kind.columns.map((column) => ({ ...column, cell: (object, now) => column.cell(toStorage(object), now) })),
    selectableFields: Object.fromEntries(
      Object.entries(kind.selectableFields).map(([field, value]) => [field, (object: T) => value(toStorage(object))]),
    ),
    subresources: [],
    strategy: convertStrategy(kind.strategy, toStorage, fromStorage),
    conversion,
  };
}

function convertStrategy<T extends ApiObject, S extends ApiObject>(
  strategy: Strategy<S>,
  to: (object: T) => S,
  from: (object: S) => T,
): Strategy<T> {
  const toOptional = (object: T | undefined): S | undefined => (object === undefined ? undefined : to(object));
  return {
    setDefaults: (object) => {
      const stored = to(object);
      return from(strategy.setDefaults?.(stored) ?? stored);
    },
    prepareForCreate: (object, now, requester) => {
      const stored = to(object);
      return from(strategy.prepareForCreate?.(stored, now, requester) ?? stored);
    },
    prepareForUpdate: (next, previous, now) => {
      const stored = to(next);
      return from(strategy.prepareForUpdate?.(stored, to(previous), now) ?? stored);
    },
    validate: (object, previous, features) => strategy.validate?.(to(object), toOptional(previous), features) ?? [],
    validateUpdate: (next, previous, features) => strategy.validateUpdate?.(to(next), to(previous), features) ?? [],
  };
}

const flatClaimStatus: Partial<SubresourceStrategy<FlatResourceClaim>> = {
  prepareForUpdate: (next, previous, now) =>
    claimFromStorage(resourceClaimStatusStrategy.prepareForUpdate(claimToStorage(next), claimToStorage(previous), now)),
  validateUpdate: (next, previous) =>
    resourceClaimStatusStrategy.validateUpdate(claimToStorage(next), claimToStorage(previous)),
};

const versions = [
  { version: "v1beta1", since: "1.32", types: betaTypes },
  { version: "v1alpha3", since: "1.31", types: alphaTypes },
] as const;

export const flatResourceClaimKinds: readonly Kind<FlatResourceClaim>[] = versions.map(({ types, ...version }) => ({
  ...flatVersionOf({
    ...version,
    kind: resourceClaimKind,
    schema: types.resourceClaim,
    toStorage: claimToStorage,
    fromStorage: claimFromStorage,
  }),
  subresources: [statusSubresource("ResourceClaim", flatClaimStatus)],
}));

export const flatResourceClaimTemplateKinds: readonly Kind<FlatResourceClaimTemplate>[] = versions.map(
  ({ types, ...version }) =>
    flatVersionOf({
      ...version,
      kind: resourceClaimTemplateKind,
      schema: types.resourceClaimTemplate,
      toStorage: templateToStorage,
      fromStorage: templateFromStorage,
    }),
);

/** The version that controllers and the scheduler use, as Kubernetes' do. */
export const betaResourceClaimKind = flatResourceClaimKinds[0]!;
export const betaResourceClaimTemplateKind = flatResourceClaimTemplateKinds[0]!;
export const betaDeviceClassKind: Kind<DeviceClass> = otherVersionOf(deviceClassKind, "v1beta1", { since: "1.32" });

export const betaResourceSliceKind: Kind<BetaResourceSlice> = flatVersionOf({
  kind: resourceSliceKind,
  version: "v1beta1",
  since: "1.32",
  schema: betaResourceSlice,
  toStorage: betaSliceToStorage,
  fromStorage: betaSliceFromStorage,
});

export const alphaResourceSliceKind: Kind<AlphaResourceSlice> = flatVersionOf({
  kind: resourceSliceKind,
  version: "v1alpha3",
  since: "1.31",
  schema: alphaResourceSlice,
  toStorage: alphaSliceToStorage,
  fromStorage: alphaSliceFromStorage,
});
