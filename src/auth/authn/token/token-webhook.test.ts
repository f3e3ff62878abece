import t from "tap";
import { systemRandom } from "../../../std/crypto/random.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { RetryableError } from "../../webhook/retry.ts";
import { BearerToken } from "./bearer-token.ts";
import { cacheTokens } from "./token-cache.ts";
import { tokenWebhookAuthenticator } from "./token-webhook.ts";

const OWN = ["api"];
const user = { username: "jo", groups: ["g"] };

t.test(
  "tokenWebhookAuthenticator() accepts tokens that the webhook authenticates, cached, in matching audiences only",
  async (t) => {
    const clock = new FakeClock();
    let requested = 0;
    let answer: Awaited<ReturnType<Parameters<typeof tokenWebhookAuthenticator>[0]["review"]>> = {
      authenticated: true,
      user,
    };
    const send = async () => {
      requested++;
      return answer;
    };
    const tokens = tokenWebhookAuthenticator({ review: send, audiences: OWN, clock, random: systemRandom });
    const cached = cacheTokens(tokens, { clock, successTtlMs: 1000, failureTtlMs: 1000 });
    const by = (token: string, audiences: readonly string[] = OWN) => cached(new BearerToken(token), audiences);
    t.match(await by("a"), { user: { name: "jo", groups: ["g"] }, audiences: OWN });
    await Promise.all([by("a"), by("b"), by("b")]);
    t.equal(requested, 2, "once for each token");
    t.equal(await by("a", ["vault"]), undefined);
    await clock.advance(1001);
    for (const [next, expected] of [
      [{ authenticated: false }, undefined],
      [{ authenticated: true, user, audiences: ["vault"] }, undefined],
    ] as const) {
      answer = next;
      t.equal(await by("a"), expected);
      await clock.advance(1001);
    }
    answer = { authenticated: false, error: "no\nway" };
    await t.rejects(async () => by("a"), { message: 'the webhook rejected the token: "no\\nway"' });
    answer = { authenticated: true, user: {} };
    await t.rejects(async () => by("c"), { message: "the webhook returned no user" });
  },
);

t.test("tokenWebhookAuthenticator() retries temporary failures up to five attempts", async (t) => {
  const clock = new FakeClock();
  let requested = 0;
  const send = async (): Promise<never> => {
    requested++;
    throw new RetryableError("connection refused");
  };
  const tokens = tokenWebhookAuthenticator({ review: send, audiences: OWN, clock, random: systemRandom });
  const refused = t.rejects(async () => tokens(new BearerToken("a"), OWN), {
    message: /Failed to call the token webhook: connection refused/,
  });
  for (let turn = 0; turn < 10; turn++) await clock.advance(5_000);
  await refused;
  t.equal(requested, 5);
});
