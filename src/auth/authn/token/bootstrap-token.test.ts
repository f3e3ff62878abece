import t from "tap";
import type { Secret } from "../../../api/core/secret/schema.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { BearerToken } from "./bearer-token.ts";
import { bootstrapTokenAuthenticator, signingTokenOf } from "./bootstrap-token.ts";

const TOKEN = "abcdef.0123456789abcdef";
const OWN = ["api"];

t.test("bootstrapTokenAuthenticator() accepts a token only if its secret is valid", async (t) => {
  const clock = new FakeClock(Date.parse("2026-01-01T00:00:00Z"));
  const good = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
    expiration: "2026-01-01T00:00:01Z",
    "auth-extra-groups": "system:bootstrappers:b,system:bootstrappers:a",
  };
  const secretOf = (texts: Readonly<Record<string, string>>, more: Partial<Secret> = {}): Secret => ({
    metadata: { name: "bootstrap-token-abcdef" },
    type: "bootstrap.svc.io/token",
    data: Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
    ...more,
  });
  const send = (secret: Secret | undefined, token = TOKEN, requested: readonly string[] = OWN) => {
    const find = async (_: string, name: string) => (name === "bootstrap-token-abcdef" ? secret : undefined);
    return bootstrapTokenAuthenticator({ find, audiences: OWN, clock })(new BearerToken(token), requested);
  };
  t.same(await send(secretOf(good)), {
    user: {
      name: "system:bootstrap:abcdef",
      uid: "",
      groups: ["system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b"],
      extra: {},
    },
    audiences: OWN,
  });
  t.equal(await send(secretOf(good), TOKEN, ["vault"]), undefined);
  const others = ["abcdef", "ABCDEF.0123456789abcdef", `${TOKEN}0`, `${TOKEN}\n`, "../def.0123456789abcdef"];
  for (const other of others) t.equal(await send(secretOf(good), other), undefined, other);
  const bad: readonly (readonly [Secret | undefined, RegExp])[] = [
    [undefined, /bootstrap token abcdef does not exist/],
    [secretOf({ ...good, "token-secret": "0123456789abcdeg" }), /has another secret/],
    [secretOf({ ...good, "token-secret": "" }), /has another secret/],
    [secretOf({ ...good, "token-id": "ghijkl" }), /has another token-id/],
    [secretOf({ ...good, expiration: "2026-01-01T00:00:00Z" }), /has expired/],
    [secretOf({ ...good, expiration: "tomorrow" }), /an invalid expiration/],
    [secretOf({ ...good, "usage-bootstrap-authentication": "yes" }), /is not for authentication/],
    [
      secretOf({ ...good, "auth-extra-groups": "system:masters" }),
      /names the group "system:masters", which is not allowed/,
    ],
    [secretOf({ ...good, "auth-extra-groups": "system:bootstrappers:a\n" }), /which is not allowed/],
    [secretOf(good, { type: "Opaque" }), /has a secret of type "Opaque"/],
    [secretOf(good, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }), /is being deleted/],
  ];
  for (const [secret, message] of bad) await t.rejects(async () => send(secret), { message }, String(message));
});

t.test("signingTokenOf() accepts secrets whose name has the ID of the token, of six letters and digits", (t) => {
  const signing = (name: string, id: string) => {
    const texts = { "token-id": id, "token-secret": "s", "usage-bootstrap-signing": "true" };
    const data = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
    const secret = { metadata: { name }, type: "bootstrap.kubernetes.io/token", data: Object.fromEntries(data) };
    return signingTokenOf(secret) !== undefined;
  };
  t.ok(signing("bootstrap-token-abc123", "abc123"));
  t.notOk(signing("bootstrap-token-abc123", "abc124"));
  t.notOk(signing("bootstrap-token-abc12", "abc12"));
  t.notOk(signing("bootstrap-token-abc.12", "abc.12"));
  t.notOk(signing("bootstrap-token-", ""));
  t.end();
});
