// lib/secret-formats.ts: formats of well-known keys and tokens, for the review and for hooks.
// Invariant: every expression takes linear time, because an agent chooses the text it is matched against.
export interface SecretFormat {
  /** True if a match is hardly ever anything else. */
  readonly certain: boolean;
  readonly is: string;
  readonly like: RegExp;
}

// Exact or bounded counts keep these linear. Only formats with few false positives are listed: false alarms teach people to look away.
export const SECRET_FORMATS: readonly SecretFormat[] = [
  { certain: true, is: 'a private key', like: /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/ },
  { certain: true, is: 'an AWS access key', like: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/ },
  {
    certain: true,
    is: 'an AWS secret key',
    like: /aws_?secret_?(?:access_?)?key["']?\s{0,5}[:=]\s{0,5}["']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/i,
  },
  { certain: true, is: 'a GitHub token', like: /\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60})/ },
  { certain: true, is: 'a GitLab token', like: /\bgl(?:pat|ptt|dt|rt|cbt)-[\w-]{20}/ },
  { certain: true, is: 'a Slack token', like: /\bxox[abeoprs]-[\w-]{10}|hooks\.slack\.com\/services\/T\w{8}/ },
  {
    certain: true,
    is: 'an API key of a model provider',
    like: /\bsk-(?:ant|proj|or|svcacct)-[\w-]{20}|\bsk-[A-Za-z0-9]{40}/,
  },
  { certain: true, is: 'a Google API key', like: /\bAIza[\w-]{35}/ },
  {
    certain: true,
    is: 'an npm token',
    like: /\bnpm_[A-Za-z0-9]{36}\b|:_(?:authToken|password|auth)\s{0,5}=\s{0,5}["']?[^\s$"'{]{8}/,
  },
  { certain: true, is: 'a PyPI token', like: /\bpypi-AgEI[\w-]{50}/ },
  { certain: true, is: 'a Stripe key', like: /\b[rs]k_live_[A-Za-z0-9]{20}/ },
  { certain: true, is: 'a SendGrid key', like: /\bSG\.[\w-]{22}\.[\w-]{43}/ },
  { certain: true, is: 'a Hugging Face token', like: /\bhf_[A-Za-z]{34}\b/ },
  { certain: true, is: 'a DigitalOcean token', like: /\bdo[opr]_v1_[a-f0-9]{64}/ },
  { certain: false, is: 'a signed web token (JWT)', like: /\beyJ[\w-]{10,200}\.eyJ[\w-]{10,1000}\.[\w-]{10}/ },
  { certain: false, is: 'an address with a password in it', like: /:\/\/[^\s/:@$<{"']{1,64}:[^\s/:@$<{"']{3,64}@/ },
];
