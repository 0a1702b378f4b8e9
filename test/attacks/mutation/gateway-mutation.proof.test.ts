// test/attacks/mutation/gateway-mutation.proof.test.ts: removes one protection of the gateway at a time, and shows that an attempt then
// succeeds, either of the table that `ags doctor --attack` runs or of gateway-limits.ts.
// needs: low-ports
import { expect, test } from 'vitest';
import { breaches, type Attack, type Places } from '../../../src/attack/table/attack.ts';
import { DOMAIN } from '../../../src/attack/table/origin.ts';
import { GATEWAY_ATTACKS } from '../../../src/attack/table/gateway.ts';
import { SECRET_ATTACKS } from '../../../src/attack/table/secrets.ts';
import { LIMIT_ATTACKS } from './gateway-limits.ts';
import { MUTANTS } from './gateway-mutants.ts';
import { attackGateway, type Setting } from './gateway-stage.ts';
import { runOnHost } from '../run-inside.ts';

/** Attempts that bypass the gateway; inside.ts runs them. */
const ELSEWHERE = ['dns-other-servers'];
const SHARED = [...GATEWAY_ATTACKS, ...SECRET_ATTACKS].filter(({ id }) => !ELSEWHERE.includes(id));

const LATE = /(?:= 504|no answer\)?)$/;

test('the unchanged gateway stops every attempt', async () => {
  let found = await attackGateway([], SHARED);
  // On a busy machine a few answers come too late, different ones each time: only those are tried again.
  for (let more = 2; more > 0 && found.length > 0 && found.every((one) => LATE.test(one)); more--) {
    const again = new Set(await attackGateway([], SHARED));
    found = found.filter((one) => again.has(one));
  }
  expect(found).toEqual([]);
});

test.concurrent.for(LIMIT_ATTACKS.map((attack) => [attack.id, attack] as const))(
  'the unchanged gateway stops %s',
  async ([, attack]) => {
    expect(await attackGateway([], [attack], attack.setting)).toEqual([]);
  },
);

test('an attempt without a listener counts as not made where there is a network, and as stopped where there is none', async () => {
  const nobody = { LISTENER: '1', NAMES: '1', TLS_LISTENER: '1', WEB_LISTENER: '1', ENDPOINT: '1' };
  const places = {
    ...nobody,
    LOOPBACK_PORT: '1',
    ECHO: '',
    SECURE: '1',
    DOMAIN,
    HOSTNAME: 'x',
    PROJECT: '/nonexistent',
  };
  const held = async (attacks: readonly Attack[], more: Partial<Places>): Promise<string[]> => {
    const answers = await runOnHost(attacks, { ...places, ...more }, { PATH: '/usr/bin:/bin' });
    return attacks.filter((one, i) => breaches(one, answers[i] ?? '').length === 0).map(({ id }) => id);
  };
  expect(await held(SHARED, { NETWORK: 'on', ECHO: `echo.${DOMAIN}:1` })).toEqual([]);
  const everywhere = SHARED.filter(({ needs }) => needs === undefined);
  expect(await held(everywhere, { NETWORK: 'off' })).toEqual(everywhere.map(({ id }) => id));
});

const unnoticed = new Set(MUTANTS.map(({ name }) => name));

test.concurrent.for(MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
  'without "%s", an attempt succeeds',
  async ([, { name, by, pieces }]) => {
    const attack: ((typeof SHARED)[number] & { setting?: Setting }) | undefined = [...SHARED, ...LIMIT_ATTACKS].find(
      ({ id }) => id === by,
    );
    if (attack === undefined) throw new Error(`there is no attempt ${by}`);
    const found = await attackGateway(pieces, [attack], attack.setting);
    // A gateway that lets no connection through proves nothing.
    expect(found.filter((line) => !line.includes('does not work'))).not.toEqual([]);
    unnoticed.delete(name);
  },
);

test('every protection is missed by an attempt', () => {
  expect([...unnoticed]).toEqual([]);
});
