import type { Authenticator } from "../user.ts";

/** Everybody else: `system:anonymous` in group `system:unauthenticated`; only for `paths` when given. */
export declare function anonymousAuthenticator(options?: { readonly paths?: readonly string[] }): Authenticator;
