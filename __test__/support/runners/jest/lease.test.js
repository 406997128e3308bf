'use strict';
// A project's test file whose application leases from the stores whose URLs the environment has.

const { SnowFlake } = require('snowdrift');

const { LEASE_URLS } = process.env;

for (const url of LEASE_URLS.split(' ')) {
  test(`a lease from ${new URL(url).protocol}//`, async () => {
    const flake = await SnowFlake.lease(url, { datacenterId: 1 });
    expect(typeof flake.nextId()).toBe('bigint');
    await flake.close();
  }, 300_000);
}

test('a client that fails while it is loaded', async () => {
  jest.mock('pg', () => {
    throw new Error('its own failure');
  });
  await expect(SnowFlake.lease('postgres://127.0.0.1:1/app')).rejects.toThrow(
    "cannot load the package 'pg', which a lease from postgres:// needs: Error: its own failure",
  );
});
