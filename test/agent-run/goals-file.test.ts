// test/agent-run/goals-file.test.ts: goals in a file: which lines are goals, their settings, and their order.
import { expect, test } from 'vitest';
import { orderGoals } from '../../src/agent-run/goal-order.ts';
import { readGoalsFile } from '../../src/cli/goals-file.ts';

const texts = (text: string): string[] => readGoalsFile(text).goals.map((goal) => goal.text);

test('goals are lines, or list items with their indented text; done items are left out', () => {
  expect(texts('one\n\n# heading\ntwo\n')).toEqual(['one', 'two']);
  const list = '# T\ntext before\n- one\n  more of one\n- [x] two\n  more of two\n\nnot this\n- [ ] three\n3. four\n';
  expect(texts(list)).toEqual(['one\nmore of one', 'three', 'four']);
  expect(readGoalsFile(list).leftOut).toEqual([
    { line: 2, text: 'text before', why: 'not a list item' },
    { line: 5, text: 'two', why: 'done' },
    { line: 8, text: 'not this', why: 'not a list item' },
  ]);
  expect(readGoalsFile('')).toEqual({ goals: [], leftOut: [] });
});

test('a goal has settings in brackets at the end of a line, and other brackets are text', () => {
  const file = `- Set up (it all) (name: setup, max-time: 30m)
- Fix the login (name: login, agent: ./my agent, --fast, model: big)
  so that it works (see a.ts)
  (after: setup, max-cost: 2.50, max-turns: 20)
- Look at (https://example.com) and f(a: b).
`;
  expect(readGoalsFile(file).goals).toEqual([
    { line: 1, text: 'Set up (it all)', name: 'setup', maxSeconds: 1800 },
    {
      line: 2,
      text: 'Fix the login\nso that it works (see a.ts)',
      name: 'login',
      agent: './my agent, --fast',
      model: 'big',
      after: 'setup',
      maxCostMicros: 2_500_000,
      maxTurns: 20,
    },
    { line: 5, text: 'Look at (https://example.com) and f(a: b).' },
  ]);
});

test.each([
  ['- a\n- b (nmae: x)', 'Line 2: there is no setting "nmae".'],
  ['- a (name: x)\n  (name: y)', 'Line 2: this goal has two settings "name".'],
  ['- a (name: x, name: y)', 'Line 1: this goal has two settings "name".'],
  ['- a (name: X Y)', 'Line 1: name: "X Y" is not a valid name: use up to 40 lowercase letters, digits and hyphens.'],
  ['one\ntwo (max-time: soon)', 'Line 2: max-time is a time such as 30m or 2h, not "soon".'],
  ['- a (max-cost: 0)', 'Line 1: max-cost is an amount in dollars such as 2.50, not "0".'],
  ['- a (max-turns: 1.5)', 'Line 1: max-turns is a number from 1 to 100000, not "1.5".'],
  ['- a (agent: )', 'Line 1: agent has no value.'],
])('%j is refused with its line', (text, message) => {
  expect(() => readGoalsFile(text)).toThrow(expect.objectContaining({ code: 'usage.invalid', message }) as Error);
});

test('a goal comes after the one that it names; unknown names, cycles and equal names are refused', () => {
  const goals = (text: string) =>
    text.split(' ').map((one, i) => {
      const [name = '', after] = one.split('<');
      return { name, at: `Line ${i + 1}`, ...(after === undefined ? {} : { after }) };
    });
  const order = (text: string): string =>
    orderGoals(goals(text), (name) => name === 'old')
      .map(({ name }) => name)
      .join(' ');
  expect([order('a b c'), order('c<b b<a a d'), order('x<old'), order('b<a c<a a')]).toEqual([
    'a b c',
    'a b c d',
    'x',
    'a b c',
  ]);
  const refused = (text: string): unknown => {
    try {
      return order(text);
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect([refused('a b<nosuch'), refused('a<a'), refused('d a<c b<a c<b'), refused('a a')]).toEqual([
    'Line 2: there is no goal or task called nosuch.',
    'Line 1: goals wait for each other: a after a.',
    'Line 2: goals wait for each other: a after c after b after a.',
    'Line 2: two goals are called a.',
  ]);
});
