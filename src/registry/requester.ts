import type { CertificateSigningRequest } from "../api/certificates/certificate-signing-request.ts";
import type { ApiObject } from "../api/kind.ts";
import type { Admit } from "./create.ts";

/** Writes into a request for a certificate who asks for it: whoever approves it has to know. */
export const withRequester: Admit = async ({ user }, object): Promise<ApiObject> => {
  const { spec } = object as CertificateSigningRequest;
  const { username: _, uid: __, groups: ___, extra: ____, ...asked } = spec;
  const { name, uid, groups, extra } = user;
  const requester = {
    username: name,
    ...(uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
  return { ...object, spec: { ...asked, ...requester } } as ApiObject;
};
