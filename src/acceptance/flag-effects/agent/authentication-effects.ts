/** Effects of the flags for authentication and authorization. */
import { join } from "node:path";
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import { type Effect, files, get, servingFlags, user, webhookAuthorizationFlags, withFreePort } from "./support.ts";

export const authenticationEffects: Partial<Record<AgentFlagName, Effect>> = {
  "anonymous-auth": {
    set: () => withFreePort("port", { ...servingFlags, "anonymous-auth": "false" }),
    async verify(t, agent) {
      const { port } = await agent.start();
      t.equal((await get(port)).status, 401);
    },
  },
  "authorization-webhook-cache-authorized-ttl": {
    set: () =>
      withFreePort("port", { ...webhookAuthorizationFlags, "authorization-webhook-cache-authorized-ttl": "5s" }),
    async verify(t, agent) {
      agent.api.allowed.add("system:anonymous get nodes/proxy");
      const { port } = await agent.start();
      for (let time = 1; time <= 2; time++) {
        for (let again = 0; again < 2; again++) t.equal((await get(port)).status, 200);
        t.equal(agent.api.accessReviews, time, "one request in five seconds");
        await agent.clock.advance(6_000);
      }
    },
  },
  "authorization-webhook-cache-unauthorized-ttl": {
    set: () =>
      withFreePort("port", { ...webhookAuthorizationFlags, "authorization-webhook-cache-unauthorized-ttl": "5s" }),
    async verify(t, agent) {
      const { port } = await agent.start();
      for (let time = 1; time <= 2; time++) {
        for (let again = 0; again < 2; again++) t.equal((await get(port)).status, 403);
        t.equal(agent.api.accessReviews, time, "one request in five seconds");
        await agent.clock.advance(6_000);
      }
    },
  },
  "authentication-token-webhook": {
    set: () =>
      withFreePort("port", { ...servingFlags, "anonymous-auth": "false", "authentication-token-webhook": "true" }),
    async verify(t, agent) {
      agent.api.tokens.set("sesame", "ali");
      const { port } = await agent.start();
      const by = async (token: string) => (await get(port, { headers: { authorization: `Bearer ${token}` } })).status;
      t.equal(await by("sesame"), 200);
      t.equal(await by("else"), 401);
    },
  },
  "authentication-token-webhook-cache-ttl": {
    set: () =>
      withFreePort("port", {
        ...servingFlags,
        "anonymous-auth": "false",
        "authentication-token-webhook": "true",
        "authentication-token-webhook-cache-ttl": "5s",
      }),
    async verify(t, agent) {
      agent.api.tokens.set("sesame", "ali");
      const { port } = await agent.start();
      for (let time = 1; time <= 2; time++) {
        for (let again = 0; again < 2; again++) await get(port, { headers: { authorization: "Bearer sesame" } });
        t.equal(agent.api.reviews, time, "one request in five seconds");
        await agent.clock.advance(6_000);
      }
    },
  },
  "client-ca-file": {
    set: () =>
      withFreePort("port", { ...servingFlags, "anonymous-auth": "false", "client-ca-file": join(files, "ca.crt") }),
    async verify(t, agent) {
      const { port } = await agent.start();
      t.equal((await get(port)).status, 401);
      t.equal((await get(port, { cert: user.cert, key: user.key })).status, 200);
    },
  },
};
