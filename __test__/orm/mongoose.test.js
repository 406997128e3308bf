'use strict';
// Mongoose with a default function, as docs/orms.md has it: what the schema does to an ID, and where there is a
// server, what comes back from it.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const mongoose = require('mongoose');

const { assertExact, oddFlake } = require('../support/exact.js');
const { Server, missing } = require('../support/lease/servers.js');
const { SnowFlake } = require('../support/support.js');

const { Long } = mongoose.mongo;
const flake = new SnowFlake({ datacenterId: 2, workerId: 6 });
const isId = (id) => typeof id === 'bigint' && id > 2n ** 53n;

const User = mongoose.model(
  'User',
  new mongoose.Schema({
    _id: { type: BigInt, default: flake.nextId },
    name: String,
    friend: { type: BigInt, ref: 'User' },
  }),
);
const Tag = mongoose.model(
  'Tag',
  new mongoose.Schema({ _id: { type: String, default: flake.nextIdString }, name: String }),
);

test('each document gets an ID of its own, as the schema says; one that was set is kept', () => {
  const [a, b, tag] = [new User(), new User(), new Tag()];
  assert.ok(isId(a._id) && isId(b._id) && a._id !== b._id);
  assert.ok(typeof tag._id === 'string' && isId(BigInt(tag._id)));
  const id = flake.nextId();
  for (const given of [id, String(id), Long.fromBigInt(id)]) {
    assert.equal(new User({ _id: given })._id, id);
  }
});

describe('with a server', { skip: missing('mongodb') }, () => {
  let server;
  before(async () => {
    server = await Server.start('mongodb');
    await mongoose.connect(server.url);
  });
  after(async () => {
    await mongoose.disconnect();
    await server?.stop();
  });

  test('every way to insert that is not the driver itself fills the ID', async () => {
    const ada = await User.create({ name: 'ada' });
    await new User({ name: 'saved', friend: ada._id }).save();
    await User.insertMany(Array.from({ length: 1000 }, () => ({ name: 'many' })));
    await User.bulkWrite([
      { insertOne: { document: { name: 'bulk' } } },
      { updateOne: { filter: { name: 'bulk 2' }, update: { name: 'bulk 2' }, upsert: true } },
    ]);
    for (const change of ['updateOne', 'findOneAndUpdate']) {
      await User[change]({ name: change }, { name: change }, { upsert: true });
    }
    const all = await User.find();
    assert.equal(all.length, 1006);
    assert.ok(all.every(({ _id }) => isId(_id)));
    for (const key of [ada._id, String(ada._id)]) {
      assert.equal((await User.findById(key)).name, 'ada');
    }
    const saved = await User.findOne({ name: 'saved' }).populate('friend');
    assert.equal(saved.friend.name, 'ada');
    const [again] = await User.find({ _id: { $gte: ada._id } }).sort({ _id: 1 });
    assert.equal(again._id, ada._id);

    await User.collection.insertOne({ name: 'driver' });
    const { _id } = await User.collection.findOne({ name: 'driver' });
    assert.ok(_id instanceof mongoose.Types.ObjectId, 'the driver knows no schema');
    await User.collection.deleteOne({ _id });
  });

  test('lean() gives a Long, which JSON spoils, unless the connection reads bigints', async () => {
    const { _id } = await User.findOne();
    const lean = () => User.findById(_id).lean();
    const long = await lean();
    assert.ok(Long.isLong(long._id));
    assert.equal(long._id.toBigInt(), _id);
    assert.match(JSON.stringify(long), /"_id":\{"high":\d+/);
    await mongoose.disconnect();
    await mongoose.connect(server.url, { useBigInt64: true });
    assert.equal((await lean())._id, _id);
    const [row] = await User.aggregate([{ $match: { _id } }]);
    assert.equal(row._id, _id);
  });

  test('populate, $lookup, arrays and maps are exact, as Longs and as bigints', async () => {
    for (const useBigInt64 of [false, true]) {
      const { nextId } = oddFlake();
      const own = new mongoose.Mongoose();
      const type = BigInt;
      const schema = new own.Schema({
        _id: { type, default: nextId },
        friend: { type, ref: 'Person' },
        friends: [{ type, ref: 'Person' }],
        named: { type: Map, of: BigInt },
        any: {},
      });
      schema.virtual('fans', { ref: 'Person', localField: '_id', foreignField: 'friend' });
      const Person = own.model('Person', schema);
      await own.connect(server.url.replace(/app$/, `exact_${useBigInt64}`), { useBigInt64 });
      const [a, b] = [await Person.create({}), await Person.create({})];
      const [friend, other] = [a._id, b._id];
      const fields = { friend, friends: [friend, other], named: { other }, any: { of: [other] } };
      const { _id } = await Person.create(fields);
      const all = [_id, friend, other];
      const one = () => Person.findById(_id);
      const populated = one().populate('friend friends');
      assertExact((await one()).toObject(), ...all);
      assertExact((await populated.clone()).toObject(), ...all);
      assertExact(await populated.clone().lean(), ...all);
      assertExact(await one().lean(), ...all);
      assertExact((await Person.findById(friend).populate('fans')).fans[0].toObject(), ...all);
      assertExact(await Person.distinct('_id'), ...all);
      const lookup = { from: 'people', localField: 'friend', foreignField: '_id', as: 'joined' };
      const group = { _id: null, all: { $push: '$_id' }, max: { $max: '$_id' } };
      assertExact(await Person.aggregate([{ $match: { _id } }, { $lookup: lookup }]), ...all);
      assertExact(await Person.aggregate([{ $group: group }]), ...all);
      await own.disconnect();
    }
  });

  test('a String _id is read as it was written', async () => {
    const { _id } = await Tag.create({ name: 'x' });
    assert.equal((await Tag.findOne().lean())._id, _id);
  });
});
