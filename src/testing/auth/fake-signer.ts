/** A fake external signer of service account tokens, with gRPC on a socket. */
import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import type { Test } from "tap";
import { SIGNER_SERVICE, signerMethods } from "../../auth/service-account/external-signer.ts";
import { defineUnaryMethod } from "../../schema/protobuf/unary-method.ts";
import type { ObjectSchema } from "../../schema/schema.ts";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
/** DER. */
export const signerKey = publicKey.export({ type: "spki", format: "der" });

export type Answers = Readonly<Record<keyof typeof signerMethods, (request: { readonly claims?: string }) => object>>;

const defaults: Answers = {
  Metadata: () => ({ maxTokenExpirationSeconds: 7200 }),
  FetchKeys: () => ({
    keys: [
      { keyId: "k1", key: signerKey },
      { keyId: "old", key: signerKey, excludeFromOidcDiscovery: true },
    ],
    dataTimestamp: { seconds: 1_700_000_000 },
    refreshHintSeconds: 60,
  }),
  Sign: ({ claims = "" }) => signResponse({ alg: "ES256", kid: "k1", typ: "JWT" }, claims),
};

/** The signature is valid, whatever the header is. */
export function signResponse(header: object, claims: string): object {
  const head = Buffer.from(JSON.stringify(header)).toString("base64url");
  return { header: head, signature: signatureOf(`${head}.${claims}`) };
}

function signatureOf(text: string): string {
  return sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url");
}

/** Returns the path of the socket. */
export async function startFakeSigner(t: Test, answers: Partial<Answers>): Promise<string> {
  const server = new grpc.Server();
  const answersByMethod = { ...defaults, ...answers };
  const rows = (Object.keys(signerMethods) as (keyof typeof signerMethods)[]).map((name) => {
    const { request, response } = signerMethods[name] as {
      readonly request: ObjectSchema;
      readonly response: ObjectSchema;
    };
    const definition: grpc.MethodDefinition<object, object> = defineUnaryMethod(
      `${SIGNER_SERVICE}${name}`,
      request,
      response,
    );
    return [name, definition] as const;
  });
  const handlers = rows.map(([name]) => {
    const handle: grpc.handleUnaryCall<object, object> = ({ request }, done) =>
      done(null, answersByMethod[name](request));
    return [name, handle] as const;
  });
  server.addService(Object.fromEntries(rows), Object.fromEntries(handlers));
  // Socket paths have a short maximum length.
  const directory = await mkdtemp(join(tmpdir(), "svc-signer-"));
  const socket = join(directory, "s");
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  );
  t.teardown(async () => {
    server.forceShutdown();
    await rm(directory, { recursive: true, force: true });
  });
  return socket;
}
