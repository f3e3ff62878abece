/** In which form an answer is given: media type, and whole objects, tables or their metadata alone. */
import { kubernetesGroup } from "../../api/scheme.ts";
import { negotiate } from "../../http/negotiate.ts";
import type { RequestContext } from "../context.ts";
import { formNotAcceptable, isPretty, notAcceptable } from "../status-response.ts";

export type Format = "json" | "yaml" | "protobuf";

export interface Representation {
  readonly format: Format;
  readonly mediaType: string;
  /** Magic bytes of the protobuf envelope. */
  readonly magic: "k8s" | "svc";
  readonly as: "object" | "table" | "metadata";
  /** Of tables and metadata, in the spelling asked for: `meta.k8s.io/v1`. */
  readonly metaVersion: string;
  readonly pretty: boolean;
}

const OFFERS = [
  { mediaType: "application/json", format: "json", magic: "k8s" },
  { mediaType: "application/yaml", format: "yaml", magic: "k8s" },
  { mediaType: "application/vnd.kubernetes.protobuf", format: "protobuf", magic: "k8s" },
  { mediaType: "application/vnd.svc.protobuf", format: "protobuf", magic: "svc" },
] as const;

/** What refusals name: the project's own spelling of protobuf is served and not advertised. */
const ANSWERS = OFFERS.slice(0, 3).map((offer) => offer.mediaType);
const STREAMS = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

type Offer = (typeof OFFERS)[number];

/** A stream of YAML documents is nothing clients ask for. */
const WATCH_OFFERS = OFFERS.filter((offer) => offer.format !== "yaml");

/**
 * Throws a 406 when the client takes nothing that can be given. `list` says which of the two metadata forms fits;
 * `hasProtobuf`, whether whole objects have that form.
 */
export function representationOf(
  context: RequestContext,
  shape: "object" | "list" | "watch",
  hasProtobuf = true,
): Representation {
  const { headers } = context.request;
  const offers: readonly Offer[] = shape === "watch" ? WATCH_OFFERS : OFFERS;
  const chosen = negotiate(headers.accept, offers, (offer, params) => {
    if (!hasProtobuf && offer.format === "protobuf" && params.as === undefined) return false;
    return fits(offer, params, shape);
  });
  if (chosen === undefined) {
    const form = negotiate(headers.accept, offers, () => true) !== undefined;
    if (form) throw formNotAcceptable(ANSWERS);
    throw notAcceptable(shape === "object" ? ANSWERS : [...ANSWERS, ...STREAMS]);
  }
  const { offer, params } = chosen;
  return {
    ...offer,
    as: params.as === undefined ? "object" : params.as === "Table" ? "table" : "metadata",
    metaVersion: `${params.g ?? "meta.k8s.io"}/${params.v ?? "v1"}`,
    pretty: isPretty(context),
  };
}

function fits(offer: Offer, params: Readonly<Record<string, string>>, shape: "object" | "list" | "watch"): boolean {
  const { as, g = "", v = "" } = params;
  if (as === undefined) return true;
  if (kubernetesGroup(g) !== "meta.k8s.io" || (v !== "v1" && v !== "v1beta1")) return false;
  // There is no protobuf form of a table.
  if (as === "Table") return offer.format !== "protobuf";
  return as === (shape === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata");
}
