// Drives mqtt.js for the tests: one JSON command per line comes in; one JSON answer or event per line goes out.
//
// Started as `node mqttjs.mjs DIRECTORY`, where DIRECTORY holds node_modules.  Bytes travel as base64.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const mqtt = createRequire(`${process.argv[2]}/package.json`)('mqtt')
const clients = new Map()

const say = (object) => process.stdout.write(`${JSON.stringify(object)}\n`)
const bytes = (text) => Buffer.from(text, 'base64')
const readable = (key, value) => (value?.type === 'Buffer' ? { base64: Buffer.from(value.data).toString('base64') } : value)
const copy = (properties) => JSON.parse(JSON.stringify(properties ?? {}, readable))
const revive = (properties) =>
  properties?.correlationData ? { ...properties, correlationData: bytes(properties.correlationData) } : properties

const actions = {
  connect({ client: name, url, options }) {
    if (options.ca) options.ca = readFileSync(options.ca)
    if (options.will) options.will.payload = bytes(options.will.payload)
    const client = mqtt.connect(url, { ...options, reconnectPeriod: 0 })
    client.stream.setNoDelay?.() // WebSocket streams have no such thing
    clients.set(name, client)
    client.on('message', (topic, payload, packet) => {
      const { qos, retain, properties } = packet
      say({ client: name, topic, payload: payload.toString('base64'), qos, retain, properties: copy(properties) })
    })
    client.on('error', () => {}) // an error without a listener would end the process
    return new Promise((resolve, reject) => {
      client.once('connect', ({ sessionPresent, properties }) => resolve({ sessionPresent, properties: copy(properties) }))
      client.once('error', reject)
      client.once('close', () => reject(new Error('closed before CONNACK')))
    })
  },

  async subscribe({ client, filter, options }) {
    const [granted] = await clients.get(client).subscribeAsync(filter, options)
    return granted.qos
  },

  async unsubscribe({ client, filter }) {
    await clients.get(client).unsubscribeAsync(filter)
  },

  async publish({ client, topic, payload, options }) {
    await clients.get(client).publishAsync(topic, bytes(payload), { ...options, properties: revive(options.properties) })
  },

  async end({ client }) {
    await clients.get(client).endAsync()
  },

  drop({ client: name }) {
    const client = clients.get(name)
    return new Promise((resolve) => {
      client.once('close', () => resolve())
      client.stream.destroy()
    })
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line)
  Promise.resolve()
    .then(() => actions[command.do](command))
    .then((result) => say({ answers: command.number, result: result ?? null }))
    .catch((error) => say({ answers: command.number, error: error.message, code: error.code ?? null }))
}
process.exit(0)
