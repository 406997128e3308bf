import { PrimarySnowFlakeColumn, SnowFlakeColumn } from 'snowdrift/typeorm';
import { Column, Entity, Index, JoinColumn, ManyToOne, OneToMany } from 'typeorm';

@Entity('customers')
export class Customer {
  @PrimarySnowFlakeColumn()
  id!: string;

  @Column('text')
  name!: string;

  @OneToMany(() => Order, 'customer')
  orders!: Order[];
}

@Entity('orders')
export class Order {
  @PrimarySnowFlakeColumn()
  id!: string;

  @Index()
  @SnowFlakeColumn()
  customerId!: string;

  @ManyToOne(() => Customer, 'orders')
  @JoinColumn({ name: 'customerId' })
  customer!: Customer;

  @Column('text')
  item!: string;
}
