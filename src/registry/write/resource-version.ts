/** Optimistic concurrency: the resourceVersion that an update sends. */
import type { ApiObject } from "../../api/kind.ts";
import { conflict, invalid, StatusError } from "../../api/status.ts";
import { invalidUnquoted, renderFieldError } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { metadataOf } from "./object-metadata.ts";
import type { WriteRequest } from "./request.ts";

/**
 * The resourceVersion that the object must still have; undefined for an unconditional update. Throws a 500, as
 * Kubernetes does, for text that is not a number.
 */
export function requestedResourceVersion(sent: ApiObject): string | undefined {
  const version = metadataOf(sent).resourceVersion ?? "";
  if (version !== "" && !/^\d+$/.test(version)) {
    throw new StatusError(500, "", `strconv.ParseUint: parsing ${goQuote(version)}: invalid syntax`);
  }
  return /^0*$/.test(version) ? undefined : version;
}

/** Throws a 409 when the stored object is no longer the one that the client read. */
export function checkResourceVersion<T extends ApiObject>(request: WriteRequest<T>, sent: T, previous: T): void {
  const version = requestedResourceVersion(sent);
  if (version === undefined || version === metadataOf(previous).resourceVersion) return;
  const { registry, scope } = request;
  const why = "the object has been modified; please apply your changes to the latest version and try again";
  throw conflict(registry.subject(scope, metadataOf(previous).name ?? ""), why);
}

/** The 422 of kinds that allow no unconditional update. */
export function resourceVersionRequired<T extends ApiObject>({ registry, scope, name }: WriteRequest<T>): StatusError {
  const error = invalidUnquoted("metadata.resourceVersion", "0x0", "must be specified for an update");
  // The only Invalid error of Kubernetes that names the resource, not the kind.
  return invalid(registry.subject(scope, name), [error], renderFieldError);
}
