/** A custom resource definition whose versions have different fields, and its conversion webhook, for tests. */
import {
  caBundle,
  type ReceivedReview,
  startTestWebhook,
  type TestWebhook,
  type WebhookAnswer,
} from "../admission/webhook-fixture.ts";

export const ROUTES = "/apis/stable.example.com";

interface Route {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec?: { readonly hostPort?: string; readonly host?: string; readonly port?: string };
}

const text = { type: "string" };
const status = { type: "object", properties: { ready: { type: "integer" } } };
const scale = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.ready" };
const replicas = { type: "integer" };

function version(name: string, storage: boolean, properties: object, selected: string) {
  return {
    name,
    served: true,
    storage,
    schema: {
      openAPIV3Schema: {
        type: "object",
        properties: { spec: { type: "object", properties: { ...properties, replicas } }, status },
      },
    },
    selectableFields: [{ jsonPath: selected }],
    subresources: { status: {}, scale },
  };
}

export type Version = "v1" | "v2";

/** In v1 a route is `{hostPort: "a:1"}`, in v2 `{host: "a", port: "1", tls}`, where tls has a default. */
export function routes(hook: Pick<TestWebhook, "url">, storage: Version = "v1", more: object = {}) {
  const tls = { type: "string", default: "off" };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "routes.stable.example.com" },
    spec: {
      group: "stable.example.com",
      scope: "Namespaced",
      names: { plural: "routes", kind: "Route" },
      versions: [
        version("v1", storage === "v1", { hostPort: text, tls: text }, ".spec.hostPort"),
        version("v2", storage === "v2", { host: text, port: text, tls }, ".spec.host"),
      ],
      conversion: {
        strategy: "Webhook",
        webhook: { conversionReviewVersions: ["v1"], clientConfig: { url: hook.url, caBundle }, ...more },
      },
    },
  };
}

export function route(name: string, spec: object, version: Version = Object.hasOwn(spec, "port") ? "v2" : "v1") {
  return { apiVersion: `stable.example.com/${version}`, kind: "Route", metadata: { name }, spec };
}

/** Converts an object to the other version. */
export function convertRoute({ spec = {}, ...object }: Route, apiVersion: string): object {
  const { hostPort, host, port, ...rest } = spec;
  if (apiVersion.endsWith("/v2")) {
    const [name, number] = (hostPort ?? "").split(":");
    return { ...object, apiVersion, spec: { ...rest, host: name, port: number } };
  }
  return { ...object, apiVersion, spec: { ...rest, hostPort: `${host}:${port}` } };
}

/** A ConversionReview response with the converted objects. */
export function conversionResponse(
  { review }: Pick<ReceivedReview, "review">,
  convertedObjects: readonly unknown[],
): object {
  const { apiVersion, kind, request } = review;
  return { apiVersion, kind, response: { uid: request.uid, result: { status: "Success" }, convertedObjects } };
}

export function convertRoutes(review: Pick<ReceivedReview, "review">): object {
  const { objects, desiredAPIVersion } = review.review.request;
  return conversionResponse(
    review,
    (objects as readonly Route[]).map((one) => convertRoute(one, desiredAPIVersion)),
  );
}

export type WebhookResponder = (review: ReceivedReview) => WebhookAnswer | Promise<WebhookAnswer>;

export interface ConversionWebhookServer {
  readonly hook: TestWebhook;
  /** Replaces the response. */
  respond: WebhookResponder;
}

/** Starts a webhook that converts correctly until `respond` is replaced. */
export async function startConversionWebhook(): Promise<ConversionWebhookServer> {
  const state: { respond: WebhookResponder } = { respond: convertRoutes };
  const hook = await startTestWebhook((review) => state.respond(review));
  return Object.assign(state, { hook });
}
