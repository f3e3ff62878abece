import { invalidField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setEndpointSliceDefaults } from "./defaults.ts";
import type { Endpoint, EndpointSlice } from "./schema.ts";
import { endpointSliceWarnings, validateEndpointSlice } from "./validation.ts";

/** Drops deprecatedTopology, which v1 replaces with fields of its own. */
function dropDeprecatedFields(object: EndpointSlice): EndpointSlice {
  return { ...object, endpoints: object.endpoints.map(dropEndpointFields) };
}

function dropEndpointFields({ deprecatedTopology: _, ...rest }: Endpoint): Endpoint {
  return rest;
}

function prepareForUpdate(next: EndpointSlice, previous: EndpointSlice): EndpointSlice {
  const prepared = deepEqual(next.endpoints, previous.endpoints) ? next : dropDeprecatedFields(next);
  const changed =
    !deepEqual({ ...prepared, metadata: undefined }, { ...previous, metadata: undefined }) ||
    !deepEqual(next.metadata?.labels ?? {}, previous.metadata?.labels ?? {});
  return updateGeneration(prepared, previous, changed);
}

export const endpointSliceStrategy: Strategy<EndpointSlice> = {
  setDefaults: setEndpointSliceDefaults,
  prepareForCreate: (object) => setFirstGeneration(dropDeprecatedFields(object)),
  prepareForUpdate,
  validate: validateEndpointSlice,
  validateUpdate: ({ addressType }, previous) =>
    addressType === previous.addressType ? [] : [invalidField("addressType", addressType, "field is immutable")],
  warnings: endpointSliceWarnings,
};
