/** Effects of the flags for authorization, with webhooks over TLS. */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Test } from "tap";
import { renderKubeconfig } from "../../../client/kubeconfig/kubeconfig.ts";
import type { HttpResponse } from "../../../http/message.ts";
import { jsonResponse } from "../../../http/respond.ts";
import type { Listener } from "../../../http/server/listener.ts";
import { listen } from "../../../http/server/server.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { makeServerCertificate } from "../../../testing/http/test-certificates.ts";
import { startAndClose } from "./support.ts";

interface Server extends AsyncDisposable {
  readonly clock: { advance(milliseconds: number): Promise<void> };
  send(
    line: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{
    readonly status: number;
    // biome-ignore lint/suspicious/noExplicitAny: tests read responses of all kinds
    readonly json: any;
  }>;
}

type StartServer = (settings: Readonly<Record<string, string>>) => Promise<Server>;
type Effect = (t: Test) => Promise<void>;

interface Review {
  readonly apiVersion: string;
  readonly spec: {
    readonly user?: string;
    readonly groups?: readonly string[];
    readonly group?: readonly string[];
    readonly resourceAttributes?: Readonly<Record<string, string>>;
  };
}

interface Hook extends AsyncDisposable {
  /** Path of the webhook's kubeconfig. */
  readonly file: string;
  readonly reviews: Review[];
}

type Status = Readonly<Record<string, unknown>>;

async function hook(t: Test, response: (review: Review) => Status): Promise<Hook> {
  const { ca, server } = await makeServerCertificate();
  const reviews: Review[] = [];
  const listener: Listener = await listen({
    handler: async (request): Promise<HttpResponse> => {
      if (request.method !== "POST" || request.path !== "/authorize") return jsonResponse(404, {});
      const chunks: Uint8Array[] = [];
      for await (const chunk of request.body) chunks.push(chunk);
      const review = JSON.parse(Buffer.concat(chunks).toString()) as Review;
      reviews.push(review);
      return jsonResponse(200, { ...review, status: response(review) });
    },
    log: silentLogger,
    clock: systemClock,
    host: "127.0.0.1",
    port: 0,
    tls: { cert: server.cert, key: server.key },
  });
  const file = join(t.testdir(), `hook-${listener.port}`);
  const at = { server: `https://127.0.0.1:${listener.port}/authorize`, ca: ca.cert, cluster: "hook", user: "" };
  writeFileSync(file, renderKubeconfig({ ...at, user: "apiserver", token: "t" }));
  return { file, reviews, [Symbol.asyncDispose]: () => listener.close(0) };
}

const ALI = { authorization: "Bearer sesame" };
const PODS = "GET /api/v1/namespaces/default/pods";

const statusOf = async (server: Server, line: string): Promise<number> =>
  (await server.send(line, undefined, ALI)).status;

/** `tokens`: a token file with token `sesame` of user `ali`. */
export function authorizationEffects(startServer: StartServer, tokens: string) {
  const withWebhook = async (t: Test, response: (review: Review) => Status, settings: Record<string, string> = {}) => {
    await using stack = new AsyncDisposableStack();
    const webhook = stack.use(await hook(t, response));
    const server = await startServer({
      "authorization-mode": "Webhook",
      "authorization-webhook-config-file": webhook.file,
      "token-auth-file": tokens,
      ...settings,
    });
    stack.move();
    return { webhook, server };
  };
  /** The number of calls of a webhook for the same request immediately, a while later, and after the TTL. */
  const reviewCount = async (
    t: Test,
    allowed: boolean,
    settings: Record<string, string>,
    pauses: readonly number[],
  ) => {
    const { webhook, server } = await withWebhook(t, () => ({ allowed }), settings);
    await using _webhook = webhook;
    await using _server = server;
    const counts: number[] = [];
    for (const pause of pauses) {
      await server.clock.advance(pause);
      await statusOf(server, PODS);
      counts.push(webhook.reviews.length);
    }
    return counts;
  };
  return {
    "authorization-policy-file": async (t) => {
      const file = join(t.testdir(), "policy");
      writeFileSync(file, '# who reads\n{"user":"ali","readonly":true,"namespace":"default"}\n');
      const settings = { "authorization-mode": "ABAC", "token-auth-file": tokens };
      await using server = await startServer({ ...settings, "authorization-policy-file": file });
      t.equal(await statusOf(server, PODS), 200);
      const refused = await server.send("DELETE /api/v1/namespaces/default/pods/x", undefined, ALI);
      t.equal(refused.status, 403);
      t.match(refused.json.message, /: No policy matched\.$/);
      await t.rejects(startAndClose(settings), { message: /mode ABAC needs --authorization-policy-file/ });
      await t.rejects(startAndClose({ "authorization-policy-file": file }), {
        message: /without --authorization-mode=…,ABAC/,
      });
      writeFileSync(file, "{}\nnonsense\n");
      await t.rejects(startAndClose({ ...settings, "authorization-policy-file": file }), {
        message: /policy, line 2: nonsense/,
      });
    },
    "authorization-webhook-config-file": async (t) => {
      const { webhook, server } = await withWebhook(t, ({ spec }) =>
        spec.resourceAttributes?.verb === "list"
          ? { allowed: true }
          : { allowed: false, denied: true, reason: "never" },
      );
      await using _server = server;
      t.equal(await statusOf(server, PODS), 200);
      const refused = await server.send(`${PODS}/x`, undefined, ALI);
      t.match(refused.json.message, /pods "x" is forbidden: .*: never$/);
      t.match(webhook.reviews[0], { spec: { user: "ali", resourceAttributes: { namespace: "default" } } });
      await webhook[Symbol.asyncDispose]();
      t.equal(await statusOf(server, "GET /api/v1/nodes"), 500, "the webhook fails");
      const endless = await withWebhook(t, () => ({ allowed: true, reason: " ".repeat(5 * 2 ** 20) }));
      await using _endless = endless.server;
      await using _answers = endless.webhook;
      t.equal(await statusOf(endless.server, PODS), 500, "the response is too large");
      const nowhere = { "authorization-mode": "Webhook", "authorization-webhook-config-file": "/no/such" };
      await t.rejects(startAndClose(nowhere), { message: /Cannot load \/no\/such/ });
    },
    "authorization-webhook-version": async (t) => {
      for (const [version, group] of [
        ["v1beta1", "group"],
        ["v1", "groups"],
      ] as const) {
        const { webhook, server } = await withWebhook(t, () => ({ allowed: true }), {
          "authorization-webhook-version": version,
        });
        await using _webhook = webhook;
        await using _server = server;
        await statusOf(server, PODS);
        t.equal(webhook.reviews[0]?.apiVersion, `authorization.k8s.io/${version}`);
        t.same(webhook.reviews[0]?.spec[group], ["thieves", "system:authenticated"]);
      }
    },
    "authorization-webhook-cache-authorized-ttl": async (t) => {
      const settings = { "authorization-webhook-cache-authorized-ttl": "10s" };
      t.same(await reviewCount(t, true, settings, [0, 9_000, 2_000]), [1, 1, 2]);
    },
    "authorization-webhook-cache-unauthorized-ttl": async (t) => {
      const settings = { "authorization-webhook-cache-unauthorized-ttl": "2s" };
      t.same(await reviewCount(t, false, settings, [0, 1_000, 2_000]), [1, 1, 2]);
    },
    "authorization-config": async (t) => {
      await using webhook = await hook(t, ({ spec }) => ({ allowed: spec.user === "ali" }));
      const file = join(dirname(webhook.file), "authorizers.yaml");
      const chain = (condition: string): string => `apiVersion: apiserver.svc.io/v1beta1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: hook
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: SvcConfigFile, svcConfigFile: ${webhook.file}}
    matchConditions:
    - expression: ${JSON.stringify(condition)}
- {type: RBAC, name: rbac}
`;
      writeFileSync(file, chain("has(request.resourceAttributes)"));
      await using server = await startServer({ "authorization-config": file, "token-auth-file": tokens });
      t.equal(await statusOf(server, PODS), 200);
      t.equal(await statusOf(server, "GET /version"), 200, "RBAC");
      t.equal(webhook.reviews.length, 1);
      writeFileSync(file, "nonsense: [");
      await server.clock.advance(61_000);
      t.equal(await statusOf(server, PODS), 200, "an invalid file has no effect");
      writeFileSync(file, chain("request.resourceAttributes.resource == 'nodes'"));
      for (let i = 0; i < 100 && (await statusOf(server, PODS)) === 200; i++) await server.clock.advance(61_000);
      t.equal(await statusOf(server, PODS), 403, "the file is read again");
      t.equal(await statusOf(server, "GET /api/v1/nodes"), 200);
      await t.rejects(startAndClose({ "authorization-config": "/no/such" }), {
        message: /--authorization-config="\/no\/such"/,
      });
    },
  } satisfies Readonly<Record<string, Effect>>;
}
