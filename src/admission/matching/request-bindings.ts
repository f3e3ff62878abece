/** The variables that expressions of webhooks and policies have: `object`, `request`, `authorizer` and so on. */
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Namespace } from "../../api/core/namespace/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { toDynamicCelValue } from "../../cel/adapter/json-value.ts";
import { toUnstructuredValue } from "../../cel/adapter/unstructured-value.ts";
import type { Variables } from "../../cel/cel.ts";
import { authorizerValue, type CheckAttributes, resourceCheckValue } from "../../cel/libraries/authorizer.ts";
import type { Value } from "../../cel/values/value.ts";
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { AuthorizationChecks } from "./authorization-checks.ts";
import type { EquivalentResource } from "./equivalent-resource.ts";
import { requestFields } from "./request-fields.ts";

export interface VersionedObjects {
  readonly object: ApiObject | undefined;
  readonly oldObject: ApiObject | undefined;
}

/** Creates the variables of a request for `resource`, with its objects in that version, at their first use. */
export function createRequestBindings(
  request: AdmissionRequest,
  resource: EquivalentResource,
  { object, oldObject }: VersionedObjects,
  checks: AuthorizationChecks,
): Variables {
  return {
    object: once(() => objectValue(resource, object)),
    oldObject: once(() => objectValue(resource, oldObject)),
    request: once(() => toDynamicCelValue(requestFields(request, resource))),
    namespaceObject: null,
    authorizer: once(() => authorizerValue(checks.check)),
    "authorizer.requestResource": once(() => resourceCheckValue(checks.check, checkedResource(request))),
  };
}

/** Computes the value at the first call. */
export function once(compute: () => Value): () => Value {
  let value: Value | undefined;
  return () => (value ??= compute());
}

function objectValue(resource: EquivalentResource, object: ApiObject | undefined): Value {
  if (object === undefined) return null;
  const { group, version, kind } = resource.objects;
  return identifiedValue(resource.schema, object, formatApiVersion(group, version), kind);
}

/** The object with `apiVersion` and `kind`. */
export function identifiedValue(
  schema: EquivalentResource["schema"],
  object: ApiObject,
  apiVersion: string,
  kind: string,
): Value {
  return toUnstructuredValue(schema, { ...object }, { apiVersion, kind });
}

/** Expressions see a part of the metadata. */
export function namespaceValue({ metadata = {}, spec, status }: Namespace): Value {
  const { name, generateName, uid, resourceVersion, generation, creationTimestamp, labels, annotations } = metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = metadata;
  const visible = {
    ...{ name, generateName, uid, resourceVersion, generation, creationTimestamp, labels, annotations },
    ...{ deletionTimestamp, deletionGracePeriodSeconds, finalizers },
  };
  return toUnstructuredValue(namespaceKind.schema, { metadata: visible, spec, status });
}

function checkedResource(request: AdmissionRequest): Omit<CheckAttributes, "verb"> {
  const { namespace, name, subresource, group, kind } = request;
  return {
    group,
    resource: kind.plural,
    ...(subresource === "" ? {} : { subresource }),
    ...(namespace === "" ? {} : { namespace }),
    ...(name === "" ? {} : { name }),
  };
}
