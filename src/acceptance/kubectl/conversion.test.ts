/** kubectl: custom resources with a conversion webhook. */
import t from "tap";
import { convertRoutes, route, routes, startConversionWebhook } from "../../testing/apiserver/conversion-fixture.ts";
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const server = await startConversionWebhook();
/** Fails for objects with the annotation, since several kubectls share the webhook. */
server.respond = (requests) => {
  const { objects } = requests.review.request;
  const isDown = (one: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } }): boolean =>
    one.metadata.annotations?.health === "down";
  return objects.some(isDown) ? [503, ""] : convertRoutes(requests);
};
t.teardown(async () => await server.hook[Symbol.asyncDispose]());

const yaml = (object: object): string => JSON.stringify(object);

const files = {
  "routes.yaml": yaml(routes(server.hook)),
  "routes-later.yaml": yaml(routes(server.hook, "v2")),
  "old.yaml": yaml(route("web", { hostPort: "a:1" })),
  "new.yaml": yaml(route("web", { host: "a", port: "2" })),
  "newer.yaml": yaml(route("web", { host: "a", port: "3", tls: "on" })),
  "away.yaml": yaml(route("away", { host: "b", port: "4" })),
};

const cases: readonly KubectlOutput[] = [
  ["apply -f DIR/routes.yaml", /routes\.stable\.example\.com created/],
  ["wait --for=condition=established --timeout=10s crd/routes.stable.example.com", /condition met/],
  ["apply -f DIR/old.yaml", /route\.stable\.example\.com\/web created/],
  ["get routes.v1.stable.example.com web -o jsonpath={.spec.hostPort}", /^a:1$/],
  [
    "get routes.v2.stable.example.com web -o jsonpath={.apiVersion}:{.spec.host}:{.spec.port}",
    /^stable.example.com\/v2:a:1$/,
  ],
  ["apply -f DIR/new.yaml", /route\.stable\.example\.com\/web configured/],
  ["apply -f DIR/new.yaml", /route\.stable\.example\.com\/web unchanged/],
  ["get routes.v1.stable.example.com web -o jsonpath={.spec.hostPort}:{.spec.tls}", /^a:2:/],
  ["apply --server-side --force-conflicts -f DIR/newer.yaml", /web serverside-applied/],
  ["get routes.v1.stable.example.com web -o jsonpath={.spec.hostPort}:{.spec.tls}", /^a:3:on$/],
  ["create -f DIR/away.yaml", /away created/],
  ["get routes.v2.stable.example.com --field-selector=spec.host=b -o name", /^route\.stable\.example\.com\/away\n$/],
  ["edit routes.v1.stable.example.com web", /web edited/, { editor: "s/a:3/a:5/" }],
  ["get routes.v2.stable.example.com web -o jsonpath={.spec.port}", /^5$/],
  ["scale --replicas=3 routes.v2.stable.example.com web", /web scaled/],
  ["get routes.v1.stable.example.com web -o jsonpath={.spec.replicas}", /^3$/],
  ["apply -f DIR/routes-later.yaml", /routes\.stable\.example\.com configured/],
  ["get crd routes.stable.example.com -o jsonpath={.status.storedVersions}", /^\["v1","v2"\]$/, { until: true }],
  ["get routes.v1.stable.example.com -o jsonpath={.items[*].spec.hostPort}", /^b:4 a:5$/],
  ["label routes.v2.stable.example.com --all moved=yes", /web labeled/],
  ["get routes.v1.stable.example.com -l moved=yes -o name", /away\n.*web/],
];

const down: readonly KubectlOutput[] = [
  [
    "get routes.v1.stable.example.com",
    /Error from server: conversion webhook for stable\.example\.com\/v2, Kind=Route failed: the server is/,
    { until: true },
  ],
  ["get routes.v2.stable.example.com -o name", /away\n.*web/],
  ["delete routes.v2.stable.example.com away", /"away" deleted/],
];

const afterwards: readonly KubectlOutput[] = [
  ["annotate routes.v2.stable.example.com web health-", /annotate/],
  ["get routes.v1.stable.example.com -o jsonpath={.items[*].spec.hostPort}", /^a:5$/],
  ["delete crd routes.stable.example.com", /"routes\.stable\.example\.com" deleted/],
  ["get routes", /doesn't have a resource type "routes"|could not find the requested resource/],
];

testWithKubectls(
  [...cases, ["annotate routes.v2.stable.example.com web health=down", /annotate/], ...down, ...afterwards],
  {
    files,
  },
);
