// agent-setup/try-key.ts: tries a key at its provider with a request that costs nothing, and says in words what came back.
// Invariant: the key goes to the host of its sign-in alone, as from the gateway. Nothing of the answer is printed but counts.
import type { SignIn } from '../agents/agent.ts';
import { listOf, parseObject, textOf } from '../agents/json.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { get, type Posted } from '../gateway/dial/post.ts';
import { hostAndPort, hostInUrl } from '../protocol/host-name.ts';
import type { HostContext } from '../run/host-context.ts';
import { readSecret, wayOut } from '../run/network/open-gateway.ts';
import type { FoundSignIn } from './credentials.ts';

export interface Tried {
  /** Whether the key, or the endpoint without one, can be used as far as it was seen. null: that was not to be seen. */
  readonly works: boolean | null;
  /** The HTTP status; null: there was no answer. */
  readonly status: number | null;
  /** A sentence. */
  readonly words: string;
}

const ANSWER_MS = 8000;

/** null: nothing to try: a subscription, a host without such a request, or no network. `model`: looked for in the answer. */
export async function tryKey(
  context: HostContext,
  { network }: Pick<EffectiveConfig, 'network'>,
  { signIn, secret }: FoundSignIn,
  model: string | null,
): Promise<Tried | null> {
  const { trial } = signIn;
  if (trial === undefined || network.mode === 'off') return null;
  const value = await readSecret(context, network, secret);
  const url = trialUrl(signIn, trial.path);
  const own = secret.own !== undefined;
  const way = await wayOut(context, network, own ? [hostAndPort(secret.host, secret.port)] : []);
  const ask = (key: string): Promise<Posted | string> => {
    const signed = key === '' ? {} : { [secret.header]: (secret.send ?? '{}').replaceAll('{}', () => key) };
    return get(way, url, { ...trial.headers, ...signed }, ANSWER_MS);
  };
  try {
    const answer = await ask(value);
    if (typeof answer === 'string') return { works: false, status: null, words: `There was no answer: ${answer}.` };
    // Some endpoints list their models for everyone: then the answer says nothing about the key.
    const open = own && value !== '' && isGood(answer) && isGood(await ask(''));
    return { ...judge(answer, url, model, value !== '', open), status: answer.status };
  } finally {
    way.close();
  }
}

function trialUrl({ secret: { host, port, own } }: SignIn, path: string): URL {
  const scheme = own?.tls === false ? 'http' : 'https';
  return new URL(`${scheme}://${hostInUrl(host)}:${port}${own?.path ?? ''}${path}`);
}

function isGood(answer: Posted | string): boolean {
  return typeof answer !== 'string' && answer.status >= 200 && answer.status < 300;
}

function judge(
  { status, text }: Posted,
  url: URL,
  model: string | null,
  withKey: boolean,
  open: boolean,
): Pick<Tried, 'works' | 'words'> {
  if (isGood({ status, text })) {
    const said = withKey ? 'The key was accepted' : 'It answers without a key';
    const about = open ? 'It answers, but also without a key, so whether the key is right was not to be seen' : said;
    return { works: open ? null : true, words: `${about} (${status}${modelsIn(text, model)}).` };
  }
  switch (status) {
    case 401:
      return {
        works: false,
        words: withKey
          ? 'The key was refused (401): it is wrong, revoked, or for another provider.'
          : 'It wants a key (401).',
      };
    case 403:
      return {
        works: null,
        words: `It refused the request (403): the key may not list models, or may not be used from here.`,
      };
    case 404:
    case 405:
      return {
        works: null,
        words: `There is nothing at ${url.origin}${url.pathname} (${status}). Either it has no list of models, or the path of the URL is wrong.`,
      };
    case 429:
      return { works: null, words: 'It answered that a limit is reached (429): too many requests, or no credit left.' };
  }
  const odd =
    status >= 500
      ? `It has an error of its own (${status}).`
      : status >= 300 && status < 400
        ? `It sends to another address (${status}); the URL must be the final one.`
        : `It answered with status ${status}.`;
  return { works: null, words: odd };
}

/** ", 12 models": of an answer like that of OpenAI, Anthropic or Gemini. */
function modelsIn(text: string, model: string | null): string {
  const read = parseObject(text);
  const list = listOf(read?.['data'] ?? read?.['models']);
  if (list.length === 0) return '';
  const names = list.flatMap(
    (one: unknown) => textOf(one, 'id') ?? textOf(one, 'name')?.replace(/^models\//, '') ?? [],
  );
  const count = `, ${names.length} ${names.length === 1 ? 'model' : 'models'}`;
  return model === null ? count : `${count}; ${model} is ${names.includes(model) ? 'one of them' : 'not among them'}`;
}
