/** Content negotiation: the media type, and whether objects, tables or metadata are returned. */
import { kubernetesGroup } from "../../api/scheme.ts";
import { acceptsExactly, negotiate } from "../../http/negotiate.ts";
import type { RequestContext } from "../request/request-context.ts";
import {
  acceptsStream,
  isPretty,
  notAcceptable,
  requestsTransform,
  transformNotAcceptable,
} from "./status-response.ts";

export type Format = "json" | "yaml" | "protobuf" | "cbor";

export interface Representation {
  readonly format: Format;
  readonly mediaType: string;
  /** Magic bytes of the protobuf envelope. */
  readonly magic: "k8s" | "svc";
  readonly as: "object" | "table" | "metadata";
  /** Whether PartialObjectMetadataList was requested. */
  readonly isListMetadata: boolean;
  /** The apiVersion of tables and metadata, with the requested group alias: `meta.k8s.io/v1`. */
  readonly metaVersion: string;
  readonly pretty: boolean;
}

interface Offer {
  readonly mediaType: string;
  readonly format: Format;
  readonly magic: "k8s" | "svc";
}

const JSON_OFFER: Offer = { mediaType: "application/json", format: "json", magic: "k8s" };
const YAML_OFFER: Offer = { mediaType: "application/yaml", format: "yaml", magic: "k8s" };
const PROTOBUF_OFFER: Offer = { mediaType: "application/vnd.kubernetes.protobuf", format: "protobuf", magic: "k8s" };
const CBOR_OFFER: Offer = { mediaType: "application/cbor", format: "cbor", magic: "k8s" };
const TEXT_OFFER = { mediaType: "text/plain" };
const SVC_OFFER: Offer = { mediaType: "application/vnd.svc.protobuf", format: "protobuf", magic: "svc" };

/** The media types in 406 messages, without the project's own protobuf type. */
const ADVERTISED = [JSON_OFFER, YAML_OFFER, PROTOBUF_OFFER];
const STREAM_TYPES = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/**
 * A review is an object that is not stored. It has no table, which would lack the result. A deletion responds with the
 * list of what it deleted; unlike a list it is never a stream. A log is text, which can be accepted beside a type of
 * objects but, as in Kubernetes, not alone.
 */
export type ResponseShape = "object" | "review" | "deletion" | "list" | "watch" | "log";

/** The media types in 406 messages. */
export function advertisedTypes(cbor: boolean): readonly string[] {
  return (cbor ? [...ADVERTISED, CBOR_OFFER] : ADVERTISED).map(({ mediaType }) => mediaType);
}

/** Of each shape; one more drops the others. */
const NEGOTIATED_MAX = 64;
const ACCEPT_LENGTH_MAX = 512;

/** Negotiates for one server. Keeps the results for recent `Accept` headers: most clients send the same few. */
export class Negotiator {
  readonly #cbor: boolean;
  readonly #builtIn = new Map<ResponseShape, Map<string, Representation>>();
  readonly #custom = new Map<ResponseShape, Map<string, Representation>>();

  /** `cbor`: the `CBORServingAndStorage` feature gate. */
  constructor(cbor: boolean) {
    this.#cbor = cbor;
  }

  /** Throws a 406 when no representation is acceptable. */
  negotiate(context: RequestContext, shape: ResponseShape, custom: boolean): Representation {
    const { accept = "" } = context.request.headers;
    const representation = this.#find(accept, shape, custom);
    return !representation.pretty && isPretty(context) ? { ...representation, pretty: true } : representation;
  }

  #find(accept: string, shape: ResponseShape, custom: boolean): Representation {
    const byShape = custom ? this.#custom : this.#builtIn;
    let recent = byShape.get(shape);
    if (recent === undefined) {
      recent = new Map();
      byShape.set(shape, recent);
    }
    let representation = recent.get(accept);
    if (representation === undefined) {
      representation = negotiateNew(accept, shape, custom, this.#cbor);
      if (accept.length > ACCEPT_LENGTH_MAX) return representation;
      if (recent.size >= NEGOTIATED_MAX) recent.clear();
      recent.set(accept, representation);
    }
    return representation;
  }
}

function negotiateNew(accept: string, shape: ResponseShape, custom: boolean, cbor: boolean): Representation {
  const advertised = advertisedTypes(cbor);
  const offers = [JSON_OFFER, YAML_OFFER, PROTOBUF_OFFER, SVC_OFFER, ...(cbor ? [CBOR_OFFER] : [])];
  // The first check compares whole media types; Kubernetes omits it for custom resources.
  const exact = shape === "log" ? [TEXT_OFFER, ...offers] : offers;
  if (!custom && !acceptsExactly(accept, exact)) throw notAcceptable(offeredTypes(shape, advertised));
  const match = negotiate(accept, offers, (offer, params) => isAcceptable(offer, params, shape, custom));
  if (match === undefined) throw transformNotAcceptable(advertised);
  const { offer, params } = match;
  // YAML has no streams; Kubernetes does not go on to the client's next type then.
  if (shape === "watch" && offer.format === "yaml") throw transformNotAcceptable(STREAM_TYPES);
  return {
    ...offer,
    as: params.as === undefined ? "object" : params.as === "Table" ? "table" : "metadata",
    isListMetadata: params.as === "PartialObjectMetadataList",
    metaVersion: `${params.g ?? "meta.k8s.io"}/${params.v ?? "v1"}`,
    pretty: params.pretty === "1",
  };
}

function offeredTypes(shape: ResponseShape, advertised: readonly string[]): readonly string[] {
  if (shape === "log") return [TEXT_OFFER.mediaType, ...advertised];
  return shape === "list" || shape === "watch" ? [...advertised, ...STREAM_TYPES] : advertised;
}

function isAcceptable(
  offer: Offer,
  params: Readonly<Record<string, string>>,
  shape: ResponseShape,
  custom: boolean,
): boolean {
  const { as, g = "", v = "", sv = "" } = params;
  // The version of the options' group.
  if (sv !== "" && sv !== "v1") return false;
  if (!acceptsStream(offer, params)) return false;
  // Custom resources support protobuf for metadata only.
  if (!requestsTransform(params)) return !custom || offer.format !== "protobuf";
  if (kubernetesGroup(g) !== "meta.k8s.io" || (v !== "v1" && v !== "v1beta1")) return false;
  // Tables have no protobuf encoding.
  if (as === "Table") return offer.format !== "protobuf" && shape !== "review" && shape !== "log";
  return as === "PartialObjectMetadata" || (as === "PartialObjectMetadataList" && shape !== "watch");
}
