import type { Authenticator } from "../user.ts";

/**
 * Asks in order and takes the first user; whoever is known joins `system:authenticated`. Bad credentials fail only
 * when no other authenticator takes them, and are never turned into an anonymous user.
 */
export declare function unionAuthenticator(
  authenticators: readonly Authenticator[],
  anonymous?: Authenticator,
): Authenticator;
